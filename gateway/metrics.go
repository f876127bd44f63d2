package gateway

import "net/http"

// showMetrics answers in the text format of Prometheus, the one answer that is
// not JSON.
func (a *api) showMetrics(w http.ResponseWriter, r *http.Request) error {
	if a.metrics == nil {
		return noRoute(w, r)
	}
	_ = a.rt.Flush() // a store that has stopped says so elsewhere; its figures are still good
	a.metrics.ServeHTTP(w, r)
	return nil
}
