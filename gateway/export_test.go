package gateway

// TrackSender marks the connection of a request as authenticated, or not.
var TrackSender = trackSender

// RouteScopes returns the scopes that each route takes, by method and path.
func RouteScopes() map[string]string {
	list := map[string]string{}
	for _, r := range new(api).routes() {
		list[r.method+" "+r.displayPath()] = r.scopes.String()
	}
	return list
}
