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

// A brief that was read is written and read again as the same, whatever
// spelling it came in; and what it lacks then is what it lacked. An optional
// list that is empty is one left out.
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
			t.Fatalf("%q was read and cannot be written: %v", doc, err)
		}
		if err := json.Unmarshal(text, &again); err != nil {
			t.Fatalf("%q was written and cannot be read: %v", text, err)
		}
		if diff := cmp.Diff(again, b, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%q, again before first:\n%s", text, diff)
		}
		if got, want := words(again.Check()), words(b.Check()); got != want {
			t.Errorf("%q lacks %q, when it was read it lacked %q", text, got, want)
		}
	})
}

func words(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

const seededRole = `{"id":"r","name":"r","createdByRole":"operator","status":"active","toolGroups":["workspace","docs"],"grant":["artifact"],"groupOwners":{"docs":"mcp:docs"}}`

// However a role's record is damaged, its agent may call nothing but tools of
// groups that the record names, and give nothing else; of a record that is no
// role it may nothing.
func FuzzRole(f *testing.F) {
	f.Add(seededRole, uint16(0), byte(0))
	f.Add(strings.Replace(seededRole, `"docs"]`, `"*"]`, 1), uint16(0), byte(0))
	f.Add(seededRole[:len(seededRole)-1]+`,"toolGroups":null}`, uint16(3), byte('x'))
	f.Add(seededRole[:len(seededRole)-1]+`,"TOOLGROUPS":["command"]}`, uint16(90), byte('"'))
	f.Add(strings.Replace(seededRole, "artifact", "art\xf5fact", 1), uint16(0), byte(0))
	f.Add(`null`, uint16(0), byte(0))
	f.Fuzz(func(t *testing.T, record string, at uint16, turn byte) {
		damaged := []byte(record)
		if len(damaged) > 0 {
			damaged[int(at)%len(damaged)] ^= turn
		}
		h := open(t)
		top := h.task(org.TaskSpec{})
		h.store.set("role", "r", string(damaged))
		h.store.set("agent", "a", `{"id":"a","roleId":"r","parentAgentId":"`+string(top)+`","taskId":"`+string(h.agent(top).Task)+`","status":"active"}`)
		h.reopen()
		if record == seededRole && turn == 0 && len(h.may("a")) == 0 {
			t.Fatal("the role as it was gives nothing, so this finds nothing")
		}
		h.wantWithin(h.may("a"), named(damaged, "toolGroups"), damaged)
		h.wantGiven("a", named(damaged, "grant"), damaged)
	})
}

// named reads, independently, the groups that a record names under a key.
func named(record []byte, key string) (groups []string) {
	if !json.Valid(record) {
		return nil
	}
	gjson.ParseBytes(record).ForEach(func(name, value gjson.Result) bool {
		if strings.EqualFold(name.Str, key) {
			for _, id := range value.Array() {
				var text string // as encoding/json reads what is no UTF-8
				if json.Unmarshal([]byte(id.Raw), &text) == nil {
					groups = append(groups, text)
				}
			}
		}
		return true
	})
	return groups
}

// wantWithin wants every tool to be of a group that is named.
func (h *house) wantWithin(tools, groups []string, record []byte) {
	h.t.Helper()
	for _, name := range tools {
		group, _ := h.groups.Snapshot().GroupOf(name)
		if !slices.Contains(groups, string(group)) && !slices.Contains(groups, "*") {
			h.t.Errorf("%q gives %s of group %s", record, name, group)
		}
	}
}

// wantGiven wants what an agent may grant to be named.
func (h *house) wantGiven(id identity.AgentID, groups []string, record []byte) {
	h.t.Helper()
	may := h.Grantable(id)
	if may.IsAll() && !slices.Contains(groups, "*") {
		h.t.Errorf("%q may grant everything", record)
	}
	for _, g := range may.IDs() {
		if !slices.Contains(groups, string(g)) && !slices.Contains(groups, "*") {
			h.t.Errorf("%q may grant %s", record, g)
		}
	}
}

const seededAgent = `{"id":"a","roleId":"r","parentAgentId":"TOP","taskId":"TASK","taskBrief":{"objective":"o","constraints":["c"],"inputs":"i","outputs":"o","completion_criteria":"c","collaborators":[{"agentId":"peer","role":"r","description":"d"}],"references":["x"],"priority":"high"},"status":"active","state":"draft","createdAt":"2026-01-02T03:04:05.000000006Z"}`

// Of any agent's record memory holds what encoding/json reads in it; one that
// encoding/json refuses is left out.
func FuzzAgent(f *testing.F) {
	for _, change := range [][2]string{
		{"", ""}, {`"id":"a"`, `"id":"a","id":"b"`}, {`"id":"a"`, `"ID":"x","id":"a"`}, {`"id":"a"`, `"id":"\u0061"`}, {`"status":"active"`, `"status":"terminated","endedBy":"c","reason":"\"r\""`},
		{`"state":"draft"`, `"state":null`}, {`"state":"draft"`, `"root":true`}, {`"state":"draft"`, "\"state\":\"dr\xffft\""}, {`"state":"draft"`, `"state":"\ud800"`}, {`"state":"draft"`, `"later":{"a":[1,2]}`},
		{`["c"]`, `"c"`}, {`["c"]`, `[null]`}, {`"inputs":"i"`, `"inputs":["i"]`}, {`"inputs":"i"`, `"inputs":7`}, {`"completion_criteria"`, `"completionCriteria"`}, {`"agentId":"peer"`, `"agentId":"p\u0065er"`},
		{`[{"agentId"`, `[null,{},{"agentId"`}, {`"agentId":"peer"`, `"agentId":"a","agentId":"peer"`}, {`2026-01-02T03:04:05.000000006Z`, `2026-01-02T03:04:05+25:00`}, {`2026-01-02T03:04:05.000000006Z`, `2026-01-02`},
		{`"createdAt":"`, `"createdAt":null,"reason":"`}, {`"TOP"`, `"peer"`}, {`"TOP"`, `"nobody"`}, {`"o","con`, `null,"con`}, {`{"id"`, " {\n\"id\""}, {`Z"}`, `Z"}x`}, {`Z"}`, `Z",}`}, {`"taskBrief":{`, `"taskBrief":{},"taskBrief":{`}, {`"references"`, `"collaborators":[],"references"`},
	} {
		f.Add(strings.Replace(seededAgent, change[0], change[1], 1))
	}
	for _, doc := range []string{``, `null`, `[]`, `{}`, `7`, `"id"`, `{"id":"a","status":"active"}`, strings.Repeat("[", 20_000)} {
		f.Add(doc)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		h := open(t)
		top := h.task(org.TaskSpec{})
		task := h.agent(top).Task
		fill := strings.NewReplacer("TOP", string(top), "TASK", string(task)).Replace
		h.store.set("role", "r", seededRole)
		h.store.set("agent", "peer", fill(`{"id":"peer","roleId":"r","parentAgentId":"TOP","taskId":"TASK","status":"active"}`))
		h.store.set("agent", "a", fill(doc))
		h.reopen()

		var want org.Agent
		loaded := json.Unmarshal([]byte(fill(doc)), &want) == nil && want.ID == "a" && want.Status == org.Active
		got, ok := h.Org.Agent("a")
		if ok != loaded {
			t.Fatalf("%q is loaded: %v, want %v", doc, ok, loaded)
		}
		if !ok {
			return
		}
		related := want.Parent == top || want.Parent == "peer"
		if !related || want.Task != task || want.Root {
			want.Parent = ""
		}
		if may := h.MayMessage("a", "peer") == nil; may != (want.Task == task && (want.Parent == "peer" || names(want.Brief.Collaborators, "peer"))) {
			t.Errorf("%q may write to peer: %v", doc, may)
		}
		want.Brief, want.EndedBy, want.Reason = org.TaskBrief{}, "", ""
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("%q, got before want:\n%s", doc, diff)
		}
	})
}

func names(list []org.Collaborator, id identity.AgentID) bool {
	return slices.ContainsFunc(list, func(c org.Collaborator) bool { return c.Agent == id })
}
