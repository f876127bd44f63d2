package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/internal/cron"
	"github.com/rolecall/rolecall/internal/payload"
	"github.com/rolecall/rolecall/internal/yamldoc"
)

// Trigger is a document of kind trigger: what starts tasks without a person.
//
//	kind: trigger
//	name: alerts
//	type: http
//	token: {secret: "${ALERT_TOKEN}"}
//	role: oncall
//	input: {name: /commonLabels/alertname}
//	text: Look at the alert {{.name}}.
type Trigger struct {
	Name   string
	Type   string // one of the trigger types
	Role   string // whose agent is asked
	Groups Groups `json:",omitzero"` // narrow what the agent may use
	Text   string
	Input  map[string]string `json:",omitempty"` // names of the template, with JSON pointers into the payload
	Key    TriggerKey        `json:",omitzero"`

	Hook     *TriggerHook `json:",omitempty"` // of TriggerHTTP
	Schedule string       `json:",omitempty"` // of TriggerCron
	Zone     string       `json:",omitempty"` // of TriggerCron; "" is UTC
	After    TriggerAfter `json:",omitzero"`  // of TriggerAfterTask

	StartsPerMinute int
	Running         int // the most tasks of the trigger that may run at a time
	Pos             yamldoc.Pos
}

// The types of triggers.
const (
	TriggerHTTP      = "http"
	TriggerCron      = "cron"
	TriggerAfterTask = "after"
)

// TriggerHook says how senders of requests prove that they know a secret: one of the two
// fields.
type TriggerHook struct {
	HMAC  *HookHMAC  `json:",omitempty"`
	Token *HookToken `json:",omitempty"`
}

// HookHMAC is a signature of the body in a header: the HMAC with SHA-256, in hexadecimal digits.
type HookHMAC struct {
	Secret yamldoc.Secret
	Header string
	Prefix string // before the digits
}

// HookToken is a secret in a header. In the header Authorization it is a bearer token.
type HookToken struct {
	Secret yamldoc.Secret
	Header string
}

// TriggerKey says what makes two requests the same. The zero TriggerKey is their body.
type TriggerKey struct {
	Pointer string `json:",omitempty"` // to a text or number in the body
	Header  string `json:",omitempty"`
}

// TriggerAfter says which tasks fire a trigger when they end. These are tasks of agents of a role,
// or tasks of another trigger.
type TriggerAfter struct {
	Role    string   `json:",omitempty"`
	Trigger string   `json:",omitempty"`
	Status  []string `json:",omitempty"` // with which the tasks end
}

// Limits of a trigger's document, and what applies without the field.
const (
	maxTriggers           = 200
	maxTriggerText        = 16 << 10
	minHookSecret         = 16
	maxStartsPerMinute    = 6000
	defaultStartsOfMinute = 60
	maxRunningTasks       = 1000
	defaultRunningTasks   = 10
)

// Headers of a hook.
const (
	defaultSignatureHeader = "X-Hub-Signature-256"
	defaultSignaturePrefix = "sha256="
	bearerHeader           = "Authorization"
)

// readTrigger reads a document of kind trigger.
func readTrigger(it item) {
	t := Trigger{Name: it.Name, Pos: it.Pos, StartsPerMinute: defaultStartsOfMinute, Running: defaultRunningTasks}
	it.DeclareItem()
	it.checkPlainName("it is part of the URL /hooks/NAME")
	if len(it.r.config.Triggers) == maxTriggers {
		it.AddError(fmt.Sprintf("is one trigger too many; at most %d are allowed", maxTriggers), "")
	}
	hook, before := TriggerHook{}, it.ErrorCount()
	it.ReadFields(yamldoc.Fields{
		"type":     yamldoc.OneOfField(&t.Type, TriggerHTTP, TriggerCron, TriggerAfterTask),
		"role":     it.ReferenceField("role", &t.Role),
		"group":    groupsField(&t.Groups),
		"text":     yamldoc.NonEmptyField(&t.Text),
		"input":    yamldoc.TextMap(&t.Input),
		"key":      triggerKeyField(&t.Key),
		"hmac":     hmacField(&hook.HMAC),
		"token":    hookTokenField(&hook.Token),
		"schedule": yamldoc.NonEmptyField(&t.Schedule),
		"zone":     yamldoc.NonEmptyField(&t.Zone),
		"after":    it.afterField(&t.After),
		"limits": yamldoc.MappingField(yamldoc.Fields{
			"startsPerMinute": yamldoc.IntField(&t.StartsPerMinute, maxStartsPerMinute),
			"running":         yamldoc.IntField(&t.Running, maxRunningTasks),
		}),
	})
	it.RequireFields("type", "role", "text")
	if it.ErrorCount() == before {
		it.checkTriggerFields(t)
		t.Hook = it.checkHook(t, hook)
		it.checkTexts(t)
		it.r.deferCheck(func(models) { it.checkTriggerCycle(t) })
	}
	it.r.config.Triggers = append(it.r.config.Triggers, t)
}

// checkTriggerFields rejects fields of other types, and requires fields of the trigger's own type.
func (it item) checkTriggerFields(t Trigger) {
	own := map[string][]string{TriggerHTTP: {"hmac", "token", "key"}, TriggerCron: {"schedule", "zone"}, TriggerAfterTask: {"after"}}
	for _, kind := range []string{TriggerHTTP, TriggerCron, TriggerAfterTask} {
		for _, name := range own[kind] {
			if at, there := it.FindField(name); there && kind != t.Type {
				at.AddRedactedError("is a field of triggers of type "+kind, "leave it out")
			}
		}
	}
	switch t.Type {
	case TriggerCron:
		it.RequireFields("schedule")
	case TriggerAfterTask:
		it.RequireFields("after")
	}
}

// checkHook returns how the senders of an http trigger are known, nil for others. It rejects a
// trigger that any sender could fire, and a signed one whose key is not signed.
func (it item) checkHook(t Trigger, hook TriggerHook) *TriggerHook {
	switch {
	case t.Type != TriggerHTTP:
		return nil
	case (hook.HMAC == nil) == (hook.Token == nil):
		it.MissingField("hmac").AddRedactedError("needs one of hmac and token", "without a secret any sender could start tasks")
	case hook.HMAC != nil && t.Key.Header != "":
		at, _ := it.FindField("key")
		at.AddError("names a header, which the signature does not cover: a replayed body with another header would start a second task",
			"leave key out: then the same body starts one task; or write key: {pointer: /id}")
	}
	return &hook
}

// checkTexts checks the template and the schedule.
func (it item) checkTexts(t Trigger) {
	if len(t.Text) > maxTriggerText {
		it.present("text").AddError(fmt.Sprintf("has more than %d bytes", maxTriggerText), "")
	} else if _, err := payload.NewTemplate(t.Text, t.Input); err != nil {
		it.present("text").AddError(err.Error(), "the names of a template are those of input; without input there is {{.payload}}")
	}
	if t.Type == TriggerCron && t.Schedule != "" {
		if _, err := cron.ParseSchedule(t.Schedule, t.Zone); err != nil {
			it.present("schedule").AddError(err.Error(), `for example "30 6 * * 1-5" with zone: Europe/Berlin`)
		}
	}
}

// present returns a field that the document has.
func (it item) present(name string) yamldoc.Value {
	v, _ := it.FindField(name)
	return v
}

// hookSecret reads a secret of a hook, which is long enough that it is not guessed.
func hookSecret(to *yamldoc.Secret) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		before := v.ErrorCount()
		yamldoc.RequiredSecret(to)(v)
		if v.ErrorCount() == before && len(*to) < minHookSecret {
			v.AddRedactedError(fmt.Sprintf("has fewer than %d bytes", minHookSecret), "choose a random text, for example with: openssl rand -hex 32")
		}
	}
}

// headerField reads the name of a header.
func headerField(to *string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		text, ok := v.ReadNonEmpty()
		if !ok {
			return
		}
		name, problem := yamldoc.CheckHeaderName(text)
		if problem != "" {
			v.AddError(problem, "")
			return
		}
		*to = name
	}
}

// hmacField reads how a body is signed.
func hmacField(to **HookHMAC) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		h, before := HookHMAC{Header: defaultSignatureHeader, Prefix: defaultSignaturePrefix}, v.ErrorCount()
		yamldoc.MappingField(yamldoc.Fields{"secret": hookSecret(&h.Secret), "header": headerField(&h.Header), "prefix": yamldoc.TextField(&h.Prefix)})(v)
		if v.ErrorCount() == before {
			requireFields(v, "secret")
		}
		*to = &h
	}
}

// hookTokenField reads which secret a header has.
func hookTokenField(to **HookToken) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		h, before := HookToken{Header: bearerHeader}, v.ErrorCount()
		yamldoc.MappingField(yamldoc.Fields{"secret": hookSecret(&h.Secret), "header": headerField(&h.Header)})(v)
		if v.ErrorCount() == before {
			requireFields(v, "secret")
		}
		*to = &h
	}
}

// triggerKeyField reads what makes two requests the same.
func triggerKeyField(to *TriggerKey) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		before := v.ErrorCount()
		yamldoc.MappingField(yamldoc.Fields{
			"header": headerField(&to.Header),
			"pointer": func(v yamldoc.Value) {
				text, ok := v.ReadNonEmpty()
				if !ok {
					return
				}
				if _, err := payload.ParsePointer(text); err != nil {
					v.AddError(err.Error(), "")
				}
				to.Pointer = text
			},
		})(v)
		if v.ErrorCount() == before && (to.Header == "") == (to.Pointer == "") {
			v.AddError("needs one of pointer and header", "for example {header: Idempotency-Key}")
		}
	}
}

// afterField reads which tasks' ends fire a trigger.
func (it item) afterField(to *TriggerAfter) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		before := v.ErrorCount()
		yamldoc.MappingField(yamldoc.Fields{
			"role":    it.ReferenceField("role", &to.Role),
			"trigger": it.ReferenceField("trigger", &to.Trigger),
			"status": yamldoc.NameSet(&to.Status, "statuses", func(name string) (string, string) {
				if slices.Contains([]string{"done", "failed", "cancelled"}, name) {
					return "", ""
				}
				return "is not a status with which tasks end", "done, failed or cancelled"
			}),
		})(v)
		if v.ErrorCount() == before && (to.Role == "") == (to.Trigger == "") {
			v.AddError("needs one of role and trigger", "for example {trigger: nightly, status: [failed]}")
		}
		if len(to.Status) == 0 {
			to.Status = []string{"done"}
		}
	}
}

// follows reports whether the end of a task of another trigger may fire t.
func (t Trigger) follows(other Trigger) bool {
	after := t.After // names one of the two, unless it has errors
	return t.Type == TriggerAfterTask && (after.Trigger != "" && after.Trigger == other.Name || after.Role != "" && after.Role == other.Role)
}

// checkTriggerCycle rejects a trigger that its own tasks would fire again.
func (it item) checkTriggerCycle(t Trigger) {
	if t.Type != TriggerAfterTask {
		return
	}
	path, seen := []string{}, map[string]bool{}
	var leads func(from Trigger) bool
	leads = func(from Trigger) bool {
		for _, next := range it.r.config.Triggers {
			if !next.follows(from) || seen[next.Name] {
				continue
			}
			seen[next.Name] = true
			if path = append(path, next.Name); next.Name == t.Name || leads(next) {
				return true
			}
			path = path[:len(path)-1]
		}
		return false
	}
	if leads(t) {
		at, _ := it.FindField("after")
		at.AddError("makes a loop: the tasks of "+yamldoc.ClipText(strings.Join(append([]string{t.Name}, path...), " start "))+" for ever", "name another role or trigger")
	}
}
