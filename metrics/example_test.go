package metrics_test

import (
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rolecall/rolecall/metrics"
	"github.com/rolecall/rolecall/toolgroups"
)

// Prometheus scrapes the load of the process. Config.Observe of the runtime gets m.Observe.
func Example() {
	reg := prometheus.NewRegistry()
	_, err := metrics.New(reg, metrics.Config{
		Groups: toolgroups.NewManager(toolgroups.ReservedIDs()...),
		Load:   func() metrics.Load { return metrics.Load{RunningTasks: 2} },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	page := httptest.NewRecorder()
	metrics.Handler(reg, nil).ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(page.Body.String()) {
		if strings.HasPrefix(line, "rolecall_") && strings.Contains(line, "task") {
			fmt.Print(line)
		}
	}
	// Output:
	// rolecall_tasks{status="paused"} 0
	// rolecall_tasks{status="running"} 2
	// rolecall_tasks{status="waiting"} 0
}
