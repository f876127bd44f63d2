package accesslog_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/internal/test/accesslog"
)

const small = `192.0.2.1 - - [17/Mar/2026:23:58:01 +0000] "POST /api/checkout?x=1 HTTP/1.1" 502 100 "-" "app"
192.0.2.1 - mara lind [17/Mar/2026:23:58:59 +0000] "POST /api/checkout HTTP/1.1" 504 - "-" "a \"quoted\" agent"
2001:db8::1 - - [18/Mar/2026:00:01:00 +0000] "GET /a b HTTP/2.0" 503 7 "-" "app" 0.031 extra

2001:db8::1 - - [18/Mar/2026:00:05:00 +0000] "GET / HTTP/2.0" 500 1000000 "-" "app"
198.51.100.2 - - [18/Mar/2026:00:05:01 +0000] "\x16\x03" 400 0
198.51.100.2 - - [18/Mar/2026:00:05:02 +0000] "" 408 - "-" "-"
198.51.100.2 - - [18/Mar/2026:00:05:03 +0000] "GET / HTTP/1.1" 200 5 "-" "cut off
not a line at all
198.51.100.2 - - [18/Foo/2026:00:05:03 +0000] "GET / HTTP/1.1" 200 5 "-" "-"
198.51.100.2 - - [18/Mar/2026:00:05:03 +0000] "GET / HTTP/1.1" OK 5 "-" "-"
198.51.100.2 - - [18/Mar/2026:00:05:03 198.51.100.2 - - [18/Mar/2026:00:05:03 +0000] "GET / HTTP/1.1" 200 5 "-" "-"`

func TestReadLog_CountsEntries(t *testing.T) {
	got, err := accesslog.ReadLog(strings.NewReader(strings.ReplaceAll(small, "\n", "\r\n")))
	if err != nil {
		t.Fatal(err)
	}
	want := &accesslog.Summary{
		Parsed: 6, Malformed: 5, Bytes: 1000107,
		First: "2026-03-17 23:58", Last: "2026-03-18 00:05",
		Statuses: map[string]int{"4xx": 2, "5xx": 4},
		Paths:    []accesslog.NamedCount{{"/api/checkout", 2}, {"/", 1}, {"/a b", 1}},
		Clients:  []accesslog.NamedCount{{"198.51.100.2", 2}},
		Busiest:  accesslog.NamedCount{Name: "2026-03-18 00:05", Count: 3},
		Burst:    accesslog.ErrorBurst{First: "2026-03-17 23:58", Last: "2026-03-18 00:01", Errors: 3, Peak: accesslog.NamedCount{Name: "2026-03-17 23:58", Count: 2}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
}

func TestReadLog_EmptyLog(t *testing.T) {
	got, err := accesslog.ReadLog(strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	if got.LineCount() != 0 || got.Burst.Errors != 0 || got.First != "" {
		t.Errorf("got %+v for an empty log", got)
	}
}

func TestReadLog_FindsIncidentOfExample(t *testing.T) {
	f, err := os.Open("../../../examples/incident-desk/access.log")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := accesslog.ReadLog(f)
	if err != nil {
		t.Fatal(err)
	}
	if got.Burst.First != "2026-03-17 14:03" || got.Burst.Last != "2026-03-17 14:21" {
		t.Errorf("burst from %s to %s, want 14:03 to 14:21", got.Burst.First, got.Burst.Last)
	}
	if got.Paths[0].Name != "/api/checkout" || got.Clients[0].Name != "198.51.100.23" || got.Malformed != 7 {
		t.Errorf("got %v, %v and %d malformed lines", got.Paths[0], got.Clients[0], got.Malformed)
	}
	t.Log(strings.Join(got.ReportRows(), "\n"))
}
