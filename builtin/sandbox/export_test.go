package sandbox

// RaceEnabled reports whether the race detector is compiled in.
const RaceEnabled = raceEnabled

// PlatformError returns why jobs cannot be isolated on a platform, nil if they can.
var PlatformError = platformError
