package replay

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"sync"
)

const (
	hidden      = "***" // stands for a secret
	shortSecret = 8     // bytes; less than that is no secret but a word
)

// redactor hides secrets. The nil redactor knows none.
type redactor struct {
	forms []string // what is hidden, the longest first
	all   *strings.Replacer
}

// newRedactor makes the redactor of a list of secrets, nil when none counts.
func newRedactor(secrets []string) *redactor {
	var forms []string
	for _, s := range secrets {
		for _, s := range [...]string{s, strings.TrimSpace(s)} {
			if len(s) >= shortSecret {
				forms = append(append(forms, formsOf(s)...), formsOf(string([]rune(s)))...) // as JSON has what is no UTF-8
			}
		}
	}
	if len(forms) == 0 {
		return nil
	}
	slices.SortFunc(forms, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	forms = slices.Compact(forms)
	var pairs []string
	for _, form := range forms {
		pairs = append(pairs, form, hidden)
	}
	return &redactor{forms, strings.NewReplacer(pairs...)}
}

// formsOf gives a secret as it is and as it stands in JSON, also in JSON that
// is a string of JSON, of encoders that escape for HTML and of those that do not.
func formsOf(secret string) []string {
	forms := []string{secret}
	for range 2 {
		for _, form := range slices.Clone(forms) {
			web, _ := json.Marshal(form) // a string always marshals
			forms = append(forms, inner(web), inner(quoted(form)))
		}
	}
	return forms
}

func inner(token []byte) string { return string(token[1 : len(token)-1]) }

// hide gives a text without the secrets.
func (r *redactor) hide(text string) string {
	if r == nil {
		return text
	}
	return r.all.Replace(text)
}

// in says whether a secret stands in a text.
func (r *redactor) in(text []byte) bool {
	return r != nil && slices.ContainsFunc(r.forms, func(form string) bool { return bytes.Contains(text, []byte(form)) })
}

// vault asks for the secrets there are. Safe for concurrent use.
type vault struct {
	secrets func() []string // nil gives none

	mu    sync.Mutex // guards the rest
	known []string   // what secrets gave last
	hide  *redactor  // of known
}

// redactor gives the redactor of the secrets there are now.
func (v *vault) redactor() *redactor {
	if v.secrets == nil {
		return nil
	}
	now := v.secrets()
	v.mu.Lock()
	defer v.mu.Unlock()
	if !slices.Equal(now, v.known) {
		v.known, v.hide = slices.Clone(now), newRedactor(now)
	}
	return v.hide
}
