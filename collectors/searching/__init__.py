"""Search providers: where the addresses to crawl come from. One file each, listed in registry."""
