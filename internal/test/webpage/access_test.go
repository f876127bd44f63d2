package webpage_test

import (
	"fmt"
	"strings"
	"testing"
)

// A call that waits for people is no call that is simply allowed: the screen says so everywhere,
// and names who must approve.
func TestPage_WhoCanShowsApprovals(t *testing.T) {
	s := startServer(t)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.goTo("#/access?role=payer&tool=write_file")
	p.waitText("Role payer may call write_file with approval by 1 person in role finance")
	p.wait(`document.querySelector("h2 .mark.approval .sign")?.textContent === "◇"`)
	p.goTo("#/access?role=payer&tool=read_file")
	p.waitText("Role payer may call read_file")
	p.goTo("#/access?role=payer")
	p.waitText("Role payer may call 4 tools of")
	p.waitText(", 1 of them with approval.")
	p.waitText("with approval by 1 person in role finance")
	p.goTo("#/access")
	p.waitText("✓ allowed, ◇ with approval, · denied.")
	for label, want := range map[string]string{
		"payer may call write_file with approval": "◇", "reader may call write_file": "✓", "finance may not call write_file": "·",
	} {
		if got := p.eval(fmt.Sprintf(`document.querySelector(".matrix [aria-label='%s']")?.textContent`, label)); got != want {
			t.Errorf("cell %q has the sign %v, want %s", label, got, want)
		}
	}
	p.eval(`URL.createObjectURL = (blob) => { blob.text().then((text) => { window.saved = text; }); return "#/access"; }; 0`)
	p.eval(`[...document.querySelectorAll("button")].find((b) => b.textContent === "Save as CSV").click(); 0`)
	p.wait("window.saved !== undefined")
	if saved := fmt.Sprint(p.eval("window.saved")); strings.Count(saved, `"with approval"`) != 1 {
		t.Errorf("saved\n%s", saved)
	}
	p.checkProblems("approvals in who can")
}
