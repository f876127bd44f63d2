package org_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
)

// A brief that was decoded is the same after it was encoded and decoded again, in
// whatever spelling it came, and Check returns the same error. An empty optional list
// equals a missing one.
func FuzzBrief(f *testing.F) {
	for _, seed := range []string{
		`{"objective":"o","constraints":["a"],"inputs":"i","outputs":["o","p"],"completion_criteria":"c"}`,
		`{"objective":"o","constraints":"a","inputs":["i"],"outputs":"","completionCriteria":["c"],"references":"r","priority":"high"}`,
		`{"collaborators":[{"agentId":"a","role":"r","description":"d"},{}],"constraints":null}`,
		`{"completion_criteria":"","completionCriteria":"x","Objective":"folded"}`, `{}`, `null`, `[]`, `{"constraints":[null]}`, `{"inputs":[]}`, `{"collaborators":[]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		var b, again org.TaskBrief
		if json.Unmarshal(doc, &b) != nil {
			return
		}
		text, err := json.Marshal(b)
		if err != nil {
			t.Fatalf("%q was decoded and cannot be encoded: %v", doc, err)
		}
		if err := json.Unmarshal(text, &again); err != nil {
			t.Fatalf("%q was encoded and cannot be decoded: %v", text, err)
		}
		if diff := cmp.Diff(again, b, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%q, again before first:\n%s", text, diff)
		}
		if got, want := messageOf(again.Check()), messageOf(b.Check()); got != want {
			t.Errorf("%q: Check returns %q, before encoding %q", text, got, want)
		}
	})
}

// messageOf returns the text of an error, "" for nil.
func messageOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

const sampleRole = `{"id":"r","name":"r","createdByRole":"operator","status":"active","toolGroups":["workspace","docs"],"grant":["artifact"],"groupOwners":{"docs":"mcp:docs"}}`

// However the record of a role is damaged, its agents may call only tools of groups that
// the record names, and may grant only such groups. A record that is not a role allows
// nothing.
func FuzzRole(f *testing.F) {
	f.Add(sampleRole, uint16(0), byte(0))
	f.Add(strings.Replace(sampleRole, `"docs"]`, `"*"]`, 1), uint16(0), byte(0))
	f.Add(sampleRole[:len(sampleRole)-1]+`,"toolGroups":null}`, uint16(3), byte('x'))
	f.Add(sampleRole[:len(sampleRole)-1]+`,"TOOLGROUPS":["command"]}`, uint16(90), byte('"'))
	f.Add(strings.Replace(sampleRole, "artifact", "art\xf5fact", 1), uint16(0), byte(0))
	f.Add(`null`, uint16(0), byte(0))
	f.Fuzz(func(t *testing.T, record string, at uint16, turn byte) {
		damaged := []byte(record)
		if len(damaged) > 0 {
			damaged[int(at)%len(damaged)] ^= turn
		}
		f := newFixture(t)
		top := f.task(org.TaskSpec{})
		f.store.set("role", "r", string(damaged))
		f.store.set("agent", "a", `{"id":"a","roleId":"r","parentAgentId":"`+string(top)+`","taskId":"`+string(f.agent(top).Task)+`","status":"active"}`)
		f.reopen()
		if record == sampleRole && turn == 0 && len(f.tools("a")) == 0 {
			t.Fatal("the undamaged role allows nothing, so the test is vacuous")
		}
		f.wantToolsOf(f.tools("a"), namedGroups(damaged, "toolGroups"), damaged)
		f.wantGrantable("a", namedGroups(damaged, "grant"), damaged)
	})
}

// namedGroups returns the groups that a record names under a key. It does not use the
// decoder of package org.
func namedGroups(record []byte, key string) (groups []string) {
	if !json.Valid(record) {
		return nil
	}
	gjson.ParseBytes(record).ForEach(func(name, value gjson.Result) bool {
		if strings.EqualFold(name.Str, key) {
			for _, id := range value.Array() {
				var text string // decoded by encoding/json, because of invalid UTF-8
				if json.Unmarshal([]byte(id.Raw), &text) == nil {
					groups = append(groups, text)
				}
			}
		}
		return true
	})
	return groups
}

// wantToolsOf checks that every tool belongs to one of groups.
func (f *fixture) wantToolsOf(tools, groups []string, record []byte) {
	f.t.Helper()
	for _, name := range tools {
		group, _ := f.groups.CurrentSnapshot().GroupOf(name)
		if !slices.Contains(groups, string(group)) && !slices.Contains(groups, "*") {
			f.t.Errorf("%q allows %s of group %s", record, name, group)
		}
	}
}

// wantGrantable checks that an agent may grant no group but those of groups.
func (f *fixture) wantGrantable(id identity.AgentID, groups []string, record []byte) {
	f.t.Helper()
	may := f.GrantableGroups(id)
	if may.IsAll() && !slices.Contains(groups, "*") {
		f.t.Errorf("%q may grant everything", record)
	}
	for _, g := range may.GroupIDs() {
		if !slices.Contains(groups, string(g)) && !slices.Contains(groups, "*") {
			f.t.Errorf("%q may grant %s", record, g)
		}
	}
}

const sampleAgent = `{"id":"a","roleId":"r","parentAgentId":"TOP","taskId":"TASK","taskBrief":{"objective":"o","constraints":["c"],"inputs":"i","outputs":"o","completion_criteria":"c","collaborators":[{"agentId":"peer","role":"r","description":"d"}],"references":["x"],"priority":"high"},"status":"active","state":"draft","createdAt":"2026-01-02T03:04:05.000000006Z"}`

// For any record of an agent, memory holds what encoding/json decodes. Records that
// encoding/json rejects are ignored.
func FuzzAgent(f *testing.F) {
	for _, change := range [][2]string{
		{"", ""}, {`"id":"a"`, `"id":"a","id":"b"`}, {`"id":"a"`, `"ID":"x","id":"a"`}, {`"id":"a"`, `"id":"\u0061"`}, {`"status":"active"`, `"status":"terminated","endedBy":"c","reason":"\"r\""`},
		{`"state":"draft"`, `"state":null`}, {`"state":"draft"`, `"root":true`}, {`"state":"draft"`, "\"state\":\"dr\xffft\""}, {`"state":"draft"`, `"state":"\ud800"`}, {`"state":"draft"`, `"later":{"a":[1,2]}`},
		{`["c"]`, `"c"`}, {`["c"]`, `[null]`}, {`"inputs":"i"`, `"inputs":["i"]`}, {`"inputs":"i"`, `"inputs":7`}, {`"completion_criteria"`, `"completionCriteria"`}, {`"agentId":"peer"`, `"agentId":"p\u0065er"`},
		{`[{"agentId"`, `[null,{},{"agentId"`}, {`"agentId":"peer"`, `"agentId":"a","agentId":"peer"`}, {`2026-01-02T03:04:05.000000006Z`, `2026-01-02T03:04:05+25:00`}, {`2026-01-02T03:04:05.000000006Z`, `2026-01-02`},
		{`"createdAt":"`, `"createdAt":null,"reason":"`}, {`"TOP"`, `"peer"`}, {`"TOP"`, `"nobody"`}, {`"o","con`, `null,"con`}, {`{"id"`, " {\n\"id\""}, {`Z"}`, `Z"}x`}, {`Z"}`, `Z",}`}, {`"taskBrief":{`, `"taskBrief":{},"taskBrief":{`}, {`"references"`, `"collaborators":[],"references"`},
	} {
		f.Add(strings.Replace(sampleAgent, change[0], change[1], 1))
	}
	for _, doc := range []string{``, `null`, `[]`, `{}`, `7`, `"id"`, `{"id":"a","status":"active"}`, strings.Repeat("[", 20_000)} {
		f.Add(doc)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		f := newFixture(t)
		top := f.task(org.TaskSpec{})
		task := f.agent(top).Task
		fill := strings.NewReplacer("TOP", string(top), "TASK", string(task)).Replace
		f.store.set("role", "r", sampleRole)
		f.store.set("agent", "peer", fill(`{"id":"peer","roleId":"r","parentAgentId":"TOP","taskId":"TASK","status":"active"}`))
		f.store.set("agent", "a", fill(doc))
		f.reopen()

		var want org.Agent
		loaded := json.Unmarshal([]byte(fill(doc)), &want) == nil && want.ID == "a" && want.Status == org.Active
		got, ok := f.Org.AgentByID("a")
		if ok != loaded {
			t.Fatalf("%q: loaded %v, want %v", doc, ok, loaded)
		}
		if !ok {
			return
		}
		related := want.Parent == top || want.Parent == "peer"
		if !related || want.Task != task || want.Root {
			want.Parent = ""
		}
		if may := f.MayMessage("a", "peer") == nil; may != (want.Task == task && (want.Parent == "peer" || hasCollaborator(want.Brief.Collaborators, "peer"))) {
			t.Errorf("%q may message peer: %v", doc, may)
		}
		want.Brief, want.EndedBy, want.Reason = org.TaskBrief{}, "", ""
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("%q, got before want:\n%s", doc, diff)
		}
	})
}

func hasCollaborator(list []org.Collaborator, id identity.AgentID) bool {
	return slices.ContainsFunc(list, func(c org.Collaborator) bool { return c.Agent == id })
}
