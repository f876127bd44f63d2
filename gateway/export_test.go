package gateway

// TrackSender marks the connection of a request as authenticated, or not.
var TrackSender = trackSender

// WithTLSAt is WithTLS with the time between two looks at the files.
var WithTLSAt = withTLS

// RouteScopes returns the scopes that each route takes, by method and path.
func RouteScopes() map[string]string {
	list := map[string]string{}
	for _, r := range new(api).routes() {
		list[r.method+" "+r.displayPath()] = r.scopes.String()
	}
	return list
}
