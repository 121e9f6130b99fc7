"""Pages and figures from the lines of measurements: a module for each page."""
