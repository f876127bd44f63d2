package gateway

import "net/http"

// showMetrics answers in the text format of Prometheus, the one answer that is
// not JSON.
func (a *api) showMetrics(w http.ResponseWriter, r *http.Request) error {
	if a.metrics == nil {
		return noRoute(w, r)
	}
	a.metrics.ServeHTTP(w, r)
	return nil
}
