package webpage_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

// screens are the places of the page that an operator sees.
var screens = []string{"organization", "task", "roles", "access", "tools", "record", "artifacts", "top", "start"}

// axe returns the source of axe-core, which checks a page for accessibility.
func axe(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../e2e/node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Fatalf("axe-core is not installed: run make deps (%v)", err)
	}
	return string(text)
}

// checkAccessible reports what axe-core finds on the page that is shown.
func (p *tab) checkAccessible(source, where string) {
	p.t.Helper()
	p.eval(source + "; 0")
	found := p.eval(`axe.run(document, {resultTypes: ["violations"]}).then((r) => JSON.stringify(r.violations.map((v) => v.id + ": " + v.help + " " + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(" | "))))`)
	var violations []string
	if err := json.Unmarshal([]byte(fmt.Sprint(found)), &violations); err != nil {
		p.t.Fatal(err)
	}
	for _, v := range violations {
		p.t.Errorf("%s: %s", where, v)
	}
}

// All screens, light and dark, with the data of tasks, roles and denied calls.
func TestPage_ScreensAreAccessibleAndKeepThePolicy(t *testing.T) {
	s := startServer(t)
	s.send(t, "ann", "POST", "/api/v1/roles", `{"name":"writer","description":"Writes","toolGroups":["workspace"],"grant":["console"]}`)
	task := startTask(t, s, "deny 3")
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	source := axe(t)
	places := append([]string{"task/" + task, "task/" + task + "?event=" + deniedEvent(t, s), "roles/writer", "organization/" + task, "organization?form=Picture", "access?role=clerk&tool=run_command", "access?tool=read_file", "access?role=clerk", "tools/workspace?tool=read_file", "record?denied=1", "nothing"}, screens...)
	for _, theme := range []string{"light", "dark", "contrast"} {
		p.eval(fmt.Sprintf(`localStorage.setItem("rolecall-theme", %[1]q); document.documentElement.dataset.theme = %[1]q; 0`, theme))
		for _, place := range places {
			p.goTo("#/" + place)
			p.checkAccessible(source, theme+" "+place)
			p.checkProblems(theme + " " + place)
		}
	}
}

// startTask starts a task and waits for its end.
func startTask(t *testing.T, s *server, text string) (id string) {
	t.Helper()
	body, _ := json.Marshal(map[string]string{"text": text})
	var task struct{ ID, Status string }
	decode(t, s.send(t, "ann", "POST", "/api/v1/tasks", string(body)), &task)
	decode(t, s.send(t, "ann", "GET", "/api/v1/tasks/"+task.ID+"?wait=1m", ""), &task)
	if task.Status != "done" {
		t.Fatalf("task %q is %s", text, task.Status)
	}
	return task.ID
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

// deniedEvent returns the sequence number of the last denied call.
func deniedEvent(t *testing.T, s *server) string {
	t.Helper()
	var page struct{ Items []struct{ Seq int } }
	decode(t, s.send(t, "ann", "GET", "/api/v1/events?denied=true&limit=1", ""), &page)
	if len(page.Items) == 0 {
		t.Fatal("no call was denied")
	}
	return fmt.Sprint(page.Items[0].Seq)
}
