"""When a site may be asked: robots.txt, turns, retries, and pages that need not be asked for."""
