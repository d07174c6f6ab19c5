"""The dashboards, a module each; `panels` holds the kinds of panels, `frame` what all dashboards have."""
