package cmd

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// answerServer is a model that streams these texts in order, with their finish reasons, and
// then repeats the last.
func answerServer(t *testing.T, answers ...[2]string) *httptest.Server {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		a := answers[min(int(asked.Add(1)), len(answers))-1]
		streamed(w, fmt.Sprintf(`{"choices":[{"index":0,"delta":{"content":%q},"finish_reason":%q}]}`, a[0], a[1]))
	}))
	t.Cleanup(server.Close)
	return server
}

// A result that is not whole is printed, and the status says so.
func TestRun_IncompleteResult(t *testing.T) {
	for _, c := range []struct {
		name    string
		answers [][2]string
		status  int
		out     string
		err     string // "" for none
		shown   string // a line of task show
	}{
		{"whole", [][2]string{{"a", "stop"}}, 0, "a\n", "", ""},
		{"cut once", [][2]string{{"one, ", "length"}, {"two", "stop"}}, 0, "one, two\n", "", ""},
		{"cut twice", [][2]string{{"one, ", "length"}, {"two", "length"}}, 1, "one, two\n", "rolecall: the result is incomplete: answer truncated at maxTokens\n", "incomplete  length: answer truncated at maxTokens"},
		{"filtered", [][2]string{{"So f", "content_filter"}}, 1, "So f\n", "rolecall: the result is incomplete: the provider's filter ended the answer\n", "incomplete  content_filter: the provider's filter ended the answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file, data := chatConfig(t, answerServer(t, c.answers...).URL), filepath.Join(t.TempDir(), "data")
			status, out, log := runIn(t, nil, "", "run", "--data", data, "-f", file, "go")
			if status != c.status || out != c.out || !strings.HasSuffix(log, c.err) || strings.Contains(log, "incomplete") != (c.err != "") {
				t.Errorf("status %d, %q\n%s", status, out, log)
			}
			shown := mustRun(t, data, "task", "show", "last")
			if !strings.Contains(shown, c.shown) || strings.Contains(shown, "incomplete") != (c.shown != "") {
				t.Errorf("shown\n%s", shown)
			}
		})
	}
}

// With --json the status and stderr say the same, and the event of the end has the reason.
func TestRun_IncompleteResultInJSON(t *testing.T) {
	file, data := chatConfig(t, answerServer(t, [2]string{"a", "content_filter"}).URL), filepath.Join(t.TempDir(), "data")
	status, out, log := runIn(t, nil, "", "run", "--json", "--data", data, "-f", file, "go")
	if status != 1 || !strings.Contains(out, `"status":"done","result":"a","incomplete":"content_filter"`) || !strings.Contains(log, "the result is incomplete") {
		t.Errorf("status %d\n%s\n%s", status, out, log)
	}
	if shown := mustRun(t, data, "task", "show", "--json", "last"); !strings.Contains(shown, `"incomplete": "content_filter"`) {
		t.Errorf("shown\n%s", shown)
	}
}

// A conversation shows an answer once, although it came in parts or after one that could not
// be used.
func TestChat_RepairedAnswers(t *testing.T) {
	for _, c := range []struct {
		name    string
		answers [][2]string
		out     string
		note    string
	}{
		{"continued", [][2]string{{"one, ", "length"}, {"two", "stop"}}, "one, two\n", ""},
		{"cut twice", [][2]string{{"one, ", "length"}, {"two", "length"}}, "one, two\n", "~ reader  answer truncated at maxTokens\n"},
		{"call as text", [][2]string{{`{"name":"read_file","arguments":{}}`, "stop"}, {"a", "stop"}}, `{"name":"read_file","arguments":{}}` + "\na\n", "~ reader  answer is a call written as text"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ch := startChat(t, chatConfig(t, answerServer(t, c.answers...).URL), filepath.Join(t.TempDir(), "data"), "reader")
			ch.send(t, "go")
			if err := ch.in.Close(); err != nil {
				t.Fatal(err)
			}
			err := <-ch.ended
			if diff := cmp.Diff(c.out, ch.out.String()); err != nil || diff != "" || !strings.Contains(ch.log.String(), c.note) {
				t.Errorf("%v (-want +got):\n%s\n%s", err, diff, ch.log.String())
			}
		})
	}
}
