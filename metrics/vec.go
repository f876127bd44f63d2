package metrics

import (
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
)

// maxSeries limits the series of each metric. Further label values are counted
// in one more series, whose labels are all otherLabel.
const maxSeries = 1000

// otherLabel is the label of names that have no label of their own.
const otherLabel = "other"

// metricVec is a metric with up to three labels and a limited number of series.
// It must be used with Metrics.mu held.
type metricVec[M any] struct {
	prometheus.Collector
	create func(...string) M // returns the series with these label values
	labels int               // number of labels
	cache  map[[3]string]M
}

// newMetricVec returns a metricVec for a vector of client_golang; create
// returns its series.
func newMetricVec[M any](c prometheus.Collector, create func(...string) M, labels []string) *metricVec[M] {
	v := &metricVec[M]{c, create, len(labels), map[[3]string]M{}}
	if v.labels == 0 {
		v.series("", "", "") // a metric without labels is exported as 0 from the start
	}
	return v
}

// newCounter returns a counter with labels.
func newCounter(name, help string, labels ...string) *metricVec[prometheus.Counter] {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	return newMetricVec(v, v.WithLabelValues, labels)
}

// newHistogram returns a histogram with labels.
func newHistogram(name, help string, buckets []float64, labels ...string) *metricVec[prometheus.Observer] {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	return newMetricVec(v, v.WithLabelValues, labels)
}

// series returns the series with these label values. Unused values are "".
func (v *metricVec[M]) series(a, b, c string) M {
	key := [3]string{a, b, c}
	if m, ok := v.cache[key]; ok {
		return m
	}
	if len(v.cache) >= maxSeries {
		key = [3]string{otherLabel, otherLabel, otherLabel}
		if m, ok := v.cache[key]; ok {
			return m
		}
	}
	return v.add(key)
}

// add creates a series.
func (v *metricVec[M]) add(key [3]string) M {
	m := v.create(key[:v.labels]...)
	v.cache[key] = m
	return m
}

// cleanLabel returns name as a label value, or otherLabel if it is too long or
// not valid UTF-8.
func cleanLabel(name string) string {
	if len(name) > 128 || !utf8.ValidString(name) {
		return otherLabel
	}
	return name
}
