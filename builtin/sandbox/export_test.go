package sandbox

// Raced says whether the race detector looks on.
const Raced = raceEnabled
