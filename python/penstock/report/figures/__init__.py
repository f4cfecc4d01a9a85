"""The figures of reports, drawn on the canvas of penstock.explain in the light palette."""
