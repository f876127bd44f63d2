package replay_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/replay"
)

// hireClerk adds the hire of an agent to a conversation. name is a field with its name, or "".
func (r *run) hireClerk(name string) {
	r.addMessage(`{"text":"hire"}`)
	r.addAnswer(&model.Answer{Finish: model.FinishToolCalls, MessagesRead: 1, Calls: []model.Call{{Name: "spawn_agent", Args: json.RawMessage(`{"roleId":"clerk"}`)}}})
	r.addResult(0, `{"id":"`+r.id("hired")+`"`+name+`,"roleName":"clerk"}`)
}

// The number in the name of an agent may differ between runs, as ids do: a played answer to a
// name goes to the same agent. Recordings of versions without names are played, too.
func TestModel_PlaysNamesOfAgents(t *testing.T) {
	for recorded, now := range map[string]string{`,"name":"clerk-2"`: `,"name":"clerk-7"`, ``: `,"name":"clerk-1"`} {
		one, two := newRun("one"), newRun("another")
		one.hireClerk(recorded)
		two.hireClerk(now)
		answer := &model.Answer{Finish: model.FinishToolCalls, MessagesRead: 1, Calls: []model.Call{{Name: "send_message", Args: json.RawMessage(`{"to":"clerk-2","payload":"for clerk-2"}`)}}}
		var file bytes.Buffer
		rec := replay.NewRecorder(&file, nil).Wrap(answering(answer))
		if _, err := one.ask(rec); err != nil {
			t.Fatal(err)
		}
		m := loadRecording(t, file.String())
		played, err := two.ask(m)
		if err != nil {
			t.Fatal(err)
		}
		want := `{"to":"` + two.id("hired") + `","payload":"for clerk-2"}`
		if recorded == "" { // no agent had this name
			want = string(answer.Calls[0].Args)
		}
		if got := string(played.Calls[0].Args); got != want {
			t.Errorf("recorded %q, now %q: got %s, want %s", recorded, now, got, want)
		}
	}
}
