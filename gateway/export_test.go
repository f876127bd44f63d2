package gateway

// TrackSender marks the connection of a request as authenticated, or not.
var TrackSender = trackSender
