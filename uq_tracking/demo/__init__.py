"""The demo: real terrain completed by seven uncertainty methods, each logged as a run."""
