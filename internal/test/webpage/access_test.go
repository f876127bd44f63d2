package webpage_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
	p.waitText("approval rule: write_file needs 1 person in role finance")
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

// All tools of a small organization are visible at once, below the names of their groups. Where
// they do not fit, the page says that there are more.
func TestPage_MatrixShowsAllColumns(t *testing.T) {
	s := startServer(t)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.goTo("#/access")
	p.waitText("✓ allowed")
	const box = `document.querySelector(".matrix-box")`
	if hidden := p.eval(box + ".scrollWidth - " + box + ".clientWidth"); hidden != 0.0 {
		t.Errorf("%v pixels of the matrix are not visible at a width of 1360", hidden)
	}
	p.wait(`getComputedStyle(document.querySelector(".more")).display === "none"`)
	var groups, below []string
	decode(t, fmt.Sprint(p.eval(`JSON.stringify([...document.querySelectorAll(".matrix [scope=colgroup]")].flatMap((th) => Array(th.colSpan).fill(th.textContent)))`)), &groups)
	decode(t, fmt.Sprint(p.eval(`JSON.stringify([...document.querySelectorAll(".matrix [scope=col][title]")].map((th) => th.title.split(",")[0]))`)), &below)
	if diff := cmp.Diff(below, groups); diff != "" || len(groups) < 15 {
		t.Errorf("the groups above the columns (-want +got):\n%s", diff)
	}
	p.setSize(360, 860)
	p.waitText("More tools are on the right →")
	p.eval(box + `.scrollTo(10000, 0); 0`)
	p.wait(`getComputedStyle(document.querySelector(".more")).display === "none"`)
	p.checkProblems("matrix")
}

// The row of the cell that has the focus is marked. The sign of a denied call can be seen.
func TestPage_MatrixIsReadable(t *testing.T) {
	s := startServer(t)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.goTo("#/access")
	p.waitText("✓ allowed")
	for _, theme := range []string{"light", "dark"} {
		p.eval(fmt.Sprintf(`document.documentElement.dataset.theme = %q; 0`, theme))
		p.eval(`document.querySelector(".matrix tbody tr:nth-child(3) .no").focus(); 0`)
		for _, row := range []int{2, 3} {
			if ratio := p.eval(fmt.Sprintf(`(%s)(document.querySelector(".matrix tbody tr:nth-child(%d) .no"))`, contrast, row)).(float64); ratio < 4.5 {
				t.Errorf("%s: the sign of a denied call in row %d has a contrast of %.1f", theme, row, ratio)
			}
		}
		if p.eval(`getComputedStyle(document.querySelector(".matrix tbody tr:nth-child(3) td")).backgroundColor === getComputedStyle(document.querySelector(".matrix tbody tr:nth-child(2) td")).backgroundColor`) == true {
			t.Errorf("%s: the row with the focus is not marked", theme)
		}
	}
}

// contrast is a function that returns the contrast of the text of a control to what is behind it.
const contrast = `(control) => {
	const luminance = (color) => {
		const [r, g, b] = color.match(/[\d.]+/g).map((c) => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; });
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	let behind = control;
	while (behind && getComputedStyle(behind).backgroundColor === "rgba(0, 0, 0, 0)") {
		behind = behind.parentElement;
	}
	const [a, b] = [getComputedStyle(control).color, getComputedStyle(behind ?? document.documentElement).backgroundColor].map(luminance);
	return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}`

// A caller whose role may call nothing reads that in place of empty tables.
func TestPage_CallerWithoutTools(t *testing.T) {
	s := startServer(t)
	p := openTab(t, newBrowser(t), s)
	p.signIn("fay")
	for _, place := range []string{"#/access", "#/tools"} {
		p.goTo(place)
		p.waitText("Your role may call no tools.")
		if p.eval(`document.querySelector("main table")`) != nil || strings.Contains(p.text(), "0 tools") {
			t.Errorf("%s shows\n%s", place, p.text())
		}
	}
	p.checkProblems("no tools")
}

// The list of those who may call a tool says through what. The column of the limit that decides is
// there only if one does.
func TestPage_WhoCanSaysWhy(t *testing.T) {
	s := startServer(t)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.goTo("#/access?tool=write_file")
	p.waitText("Who may call write_file")
	p.waitText("Their tasks have the rights of role")
	const why = `[...document.querySelectorAll("tbody tr")].find((row) => row.textContent.startsWith("%s"))?.querySelector("td:nth-child(2)").innerText.replaceAll("\n", "")`
	for role, want := range map[string]string{"clerk": "group workspace", "payer": "group workspace ◇with approval"} {
		if got := p.eval(fmt.Sprintf(why, role)); got != want {
			t.Errorf("role %s: %q, want %q", role, got, want)
		}
	}
	for tool, want := range map[string]bool{"write_file": false, "run_command": true} {
		p.goTo("#/access?role=clerk&tool=" + tool)
		p.waitText("Every limit that applies")
		if got := p.eval(`[...document.querySelectorAll("th")].some((th) => th.textContent === "Decides")`); got != want {
			t.Errorf("%s: the table has the column Decides: %v, want %v", tool, got, want)
		}
	}
	p.checkProblems("why")
}

// The list of roles has root, whose role is not stored.
func TestPage_WhoCanOffersRoot(t *testing.T) {
	s := startServer(t)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.goTo("#/access")
	p.choose("Role", "root")
	p.waitText("Role root may call")
	p.choose("Tool", "run_command")
	p.waitText("Role root may not call run_command")
	p.waitText(deniedRoot)
	p.checkProblems("root")
}

// The reasons of the roles that may not call a tool are read when their list is opened, for a
// bounded number of roles, and again when rights change.
func TestPage_DeniedRolesAreBounded(t *testing.T) {
	s := startServer(t)
	for i := range 50 {
		s.send(t, "ann", "POST", "/api/v1/roles", fmt.Sprintf(`{"name":"empty %02d","toolGroups":[]}`, i))
	}
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.goTo("#/access?tool=run_command")
	p.waitText("Roles that may not (56), and why")
	if asked := p.eval(reasonsAsked); asked != 1.0 {
		t.Errorf("%v questions before the list is open, want the one of those who may", asked)
	}
	p.click(".denied-roles summary")
	p.wait(reasonsAsked + " >= 51 && " + reasonsRead)
	p.waitText("The first 50 of 56 are shown.")
	if asked := p.eval(reasonsAsked); asked != 51.0 {
		t.Errorf("%v questions, want 51", asked)
	}
	p.checkAccessible(axe(t), "denied roles")
	s.send(t, "ann", "PATCH", "/api/v1/roles/empty%2000", `{"toolGroups":["command"]}`)
	p.waitText("Roles that may not (55), and why")
	p.waitText("The first 50 of 55 are shown.")
	p.wait(reasonsRead)
	p.checkProblems("denied roles")
}

// reasonsAsked is the number of questions that the page has asked since its load.
const reasonsAsked = `performance.getEntriesByType("resource").filter((e) => e.name.endsWith("/api/v1/can")).length`

// reasonsRead is true if no row waits for its reason.
const reasonsRead = `![...document.querySelectorAll(".denied-roles td")].some((cell) => cell.textContent.trim() === "…")`
