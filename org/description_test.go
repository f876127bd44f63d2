package org_test

import (
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
)

func TestCheckDescription(t *testing.T) {
	tests := []struct{ name, text, why string }{ // the text is accepted if why is ""
		{"none", "", ""},
		{"a sentence", "Reads files & answers questions about <them>.", ""},
		{"other alphabets", "Читает файлы 📁 und „antwortet“", ""},
		{"500 characters of four bytes", strings.Repeat("🦊", 500), ""},
		{"501 characters", strings.Repeat("é", 501), "has 501 characters"},
		{"two lines", "one\ntwo", "line break"},
		{"a line separator", "one\u2028two", "line break"},
		{"an escape sequence", "\x1b[31mred", "does not print"},
		{"a right-to-left override", "a\u202eb", "does not print"},
		{"invalid UTF-8", "a\xffb", "does not print"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			for _, by := range []identity.Principal{operator, identity.ByAgent(f.task(org.TaskSpec{}))} {
				_, err := f.create(by, org.RoleSpec{Name: "r of " + by.String(), Description: tt.text})
				if tt.why == "" {
					wantCode(t, err, "")
				} else {
					wantCode(t, err, errcode.InvalidRole, "role \"r of ", tt.why)
				}
			}
		})
	}
}

// A description is a field like the others: it survives a restart, an update that leaves it
// out keeps it, and it can be removed.
func TestRole_Description(t *testing.T) {
	f := newFixture(t)
	wantDescription := func(id identity.RoleID, want string) {
		t.Helper()
		for range 2 {
			if role, _ := f.RoleByID(id); role.Description != want {
				t.Errorf("got the description %q, want %q", role.Description, want)
			}
			f.reopen()
		}
	}
	reader := f.role(operator, org.RoleSpec{Name: "reader", Description: "Reads files.", Prompt: "p"})
	wantDescription(reader.ID, "Reads files.")
	f.update(reader.ID, org.RoleSpec{Prompt: "q"})
	wantDescription(reader.ID, "Reads files.")
	f.update(reader.ID, org.RoleSpec{Description: "Reads."})
	wantDescription(reader.ID, "Reads.")
	f.update(reader.ID, org.RoleSpec{Defaults: []org.RoleField{org.DescriptionField}})
	wantDescription(reader.ID, "")

	configured := f.configured("clerk", org.RoleSpec{Name: "clerk", Description: "Files letters."})
	wantDescription(configured.ID, "Files letters.")
	if edits := f.configure(org.RoleConfig{Roles: []org.RoleSpec{{Name: "clerk", Description: "Files letters."}}, Default: configured.Use, Root: configured.Use}); len(edits) != 0 {
		t.Errorf("the same configuration changed %+v", edits)
	}
	f.configured("clerk", org.RoleSpec{Name: "clerk"})
	wantDescription(configured.ID, "")

	root := identity.ByAgent(f.task(org.TaskSpec{}))
	made := f.role(root, org.RoleSpec{Name: "helper", Description: "Helps."})
	if again := f.role(root, org.RoleSpec{Name: "helper", Description: "Helps."}); again.ID != made.ID {
		t.Errorf("the same role again is %q, want %q", again.ID, made.ID)
	}
	_, err := f.create(root, org.RoleSpec{Name: "helper", Description: "Helps others."})
	wantCode(t, err, errcode.RoleExists)
}
