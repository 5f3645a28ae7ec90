"""Records how context really arrives: crawls, searches, and the site that the demo crawls."""
