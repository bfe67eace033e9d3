"""Pictures of trees and partitions, drawn with matplotlib."""
