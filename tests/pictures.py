"""What a picture of a tree shows, as drawn."""


def boxes_of(ax):
    """Boxes as drawn, in pixels."""
    from matplotlib.patches import FancyBboxPatch

    ax.figure.canvas.draw()
    return [patch.get_window_extent() for patch in ax.patches if isinstance(patch, FancyBboxPatch)]


def node_texts(ax):
    return [text for text in ax.texts if text.get_text() not in ("yes", "no", "no or missing")]
