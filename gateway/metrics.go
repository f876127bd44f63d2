package gateway

import "net/http"

// showMetrics answers /metrics in the text format of Prometheus.
func (a *api) showMetrics(w http.ResponseWriter, r *http.Request) error {
	if a.metrics == nil {
		return routeNotFound(w, r)
	}
	_ = a.rt.Flush() // if the store has stopped, the metrics are still valid
	a.metrics.ServeHTTP(w, r)
	return nil
}
