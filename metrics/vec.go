package metrics

import (
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
)

// maxSeries bounds the series of a family. What comes after is counted in one
// series more, all of whose labels are other.
const maxSeries = 1000

// otherLabel is the label of what has no name of its own.
const otherLabel = "other"

// metricVec is a metric with up to three labels, and the bounded number of its
// series. It is called with Metrics.mu held.
type metricVec[M any] struct {
	prometheus.Collector
	with   func(...string) M
	labels int
	made   map[[3]string]M
}

func newFamily[M any](c prometheus.Collector, with func(...string) M, labels []string) *metricVec[M] {
	f := &metricVec[M]{c, with, len(labels), map[[3]string]M{}}
	if f.labels == 0 {
		f.of("", "", "") // is shown as 0 from the start
	}
	return f
}

func counters(name, help string, labels ...string) *metricVec[prometheus.Counter] {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	return newFamily(v, v.WithLabelValues, labels)
}

func histograms(name, help string, buckets []float64, labels ...string) *metricVec[prometheus.Observer] {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	return newFamily(v, v.WithLabelValues, labels)
}

// of gives the series with these values of its labels; "" for those it has not.
func (f *metricVec[M]) of(a, b, c string) M {
	key := [3]string{a, b, c}
	if m, ok := f.made[key]; ok {
		return m
	}
	if len(f.made) >= maxSeries {
		key = [3]string{otherLabel, otherLabel, otherLabel}
		if m, ok := f.made[key]; ok {
			return m
		}
	}
	return f.add(key)
}

func (f *metricVec[M]) add(key [3]string) M {
	m := f.with(key[:f.labels]...)
	f.made[key] = m
	return m
}

// label makes a label of a name that somebody chose: what is too long or no
// text is other.
func label(name string) string {
	if len(name) > 128 || !utf8.ValidString(name) {
		return otherLabel
	}
	return name
}
