package sandbox

// RaceEnabled reports whether the race detector is compiled in.
const RaceEnabled = raceEnabled
