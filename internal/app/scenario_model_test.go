package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"
)

// scenarioModel is a server with OpenAI's protocol, whose model calls the tools that a question
// lists: steps[a b] one after another, together[a b] in one answer. A tool with ! fails. It
// makes a plan of these calls if it is asked for one, and an empty one if that is not valid. It
// keeps which tools each request offers.
type scenarioModel struct {
	*httptest.Server
	mu   sync.Mutex
	seen []string             // guarded by mu
	hold chan chan<- struct{} // receives a channel for each request, which is answered when that is closed; nil for none; guarded by mu
}

func newScenarioModel(t *testing.T) *scenarioModel {
	m := &scenarioModel{}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != "/v1/chat/completions" || !gjson.ValidBytes(body) {
			t.Errorf("the model is asked %s %s: %v", r.URL.Path, body, err)
		}
		request := gjson.ParseBytes(body)
		m.mu.Lock()
		m.seen = append(m.seen, strings.Join(sortedNames(request.Get("tools.#.function.name")), " "))
		hold := m.hold
		m.mu.Unlock()
		if hold != nil {
			goOn := make(chan struct{})
			hold <- goOn
			<-goOn
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"choices":[{"index":0,%s}],"usage":{"prompt_tokens":10,"completion_tokens":2}}`, scenarioAnswer(request))
	}))
	t.Cleanup(m.Close)
	return m
}

// holdRequests lets each later request wait until the channel that asked returns for it is closed.
func (m *scenarioModel) holdRequests(hold chan chan<- struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hold = hold
}

// takeSeen returns the tools of each request since the last call.
func (m *scenarioModel) takeSeen() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.seen
	m.seen = nil
	return list
}

func sortedNames(list gjson.Result) (names []string) {
	for _, name := range list.Array() {
		names = append(names, name.Str)
	}
	slices.Sort(names)
	return names
}

var scenarioSteps = regexp.MustCompile(`(steps|together)\[([^\]]*)\]`)

// scenarioAnswer returns the message and the finish of an answer.
func scenarioAnswer(request gjson.Result) string {
	text := request.Get("messages").String()
	question := scenarioSteps.FindStringSubmatch(text)
	rest := strings.Fields(question[2])
	done := len(request.Get(`messages.#(role=="tool")#`).Array())
	rest = rest[min(done, len(rest)):]
	switch {
	case strings.Contains(text, "Your last plan is not valid"):
		return scenarioText(`{"plan":[]}`)
	case strings.Contains(text, "make a plan"):
		return scenarioText(scenarioPlan(rest))
	case len(rest) == 0 || strings.Contains(text, "All its steps are done"):
		return scenarioText("done")
	case question[1] == "steps":
		return scenarioCalls(done, rest[:1])
	}
	return scenarioCalls(done, rest)
}

func scenarioText(text string) string {
	quoted, _ := json.Marshal(text)
	return fmt.Sprintf(`"message":{"role":"assistant","content":%s},"finish_reason":"stop"`, quoted)
}

func scenarioPlan(steps []string) string {
	var list []string
	for _, name := range steps {
		list = append(list, fmt.Sprintf(`{"tool":%q,"why":"asked for"}`, strings.TrimSuffix(name, "!")))
	}
	return `{"plan":[` + strings.Join(list, ",") + `]}`
}

// scenarioCalls returns an answer with calls; done calls were made before.
func scenarioCalls(done int, names []string) string {
	var list []string
	for i, name := range names {
		name, fails := strings.CutSuffix(name, "!")
		args := map[string]any{}
		switch {
		case name == "knowledge-query" || name == "text-completion":
			args["question"] = map[bool]string{false: "q", true: "fail"}[fails]
		case fails:
			args["fail"] = true
		}
		text, _ := json.Marshal(args)
		list = append(list, fmt.Sprintf(`{"id":"c%d","type":"function","function":{"name":%q,"arguments":%q}}`, done+i, name, text))
	}
	return `"message":{"role":"assistant","content":null,"tool_calls":[` + strings.Join(list, ",") + `]},"finish_reason":"tool_calls"`
}
