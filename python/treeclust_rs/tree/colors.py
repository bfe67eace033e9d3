"""Colours of clusters, the same in tables, graphs and pictures."""

from __future__ import annotations

import colorsys

# Tableau 10: blue, orange, green, red, purple, brown, pink, grey, olive, cyan.
_PALETTE = (
    "#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd",
    "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf",
)  # fmt: skip


def cluster_colors(n_clusters: int) -> list[str]:
    """Return a colour ``#rrggbb`` per cluster; beyond ten the hue advances by the golden angle."""
    colors = list(_PALETTE[:n_clusters])
    for extra in range(n_clusters - len(colors)):
        hue = (0.05 + 0.618034 * extra) % 1.0
        value = (0.80, 0.62, 0.93)[extra % 3]
        channels = colorsys.hsv_to_rgb(hue, 0.62, value)
        colors.append("#" + "".join(f"{round(255 * channel):02x}" for channel in channels))
    return colors


def lighten(color: str, amount: float) -> str:
    """Return a colour ``#rrggbb`` mixed with white; `amount` 1 is white."""
    channels = (int(color[start : start + 2], 16) for start in (1, 3, 5))
    return "#" + "".join(f"{round(c + (255 - c) * amount):02x}" for c in channels)
