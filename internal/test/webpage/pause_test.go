package webpage_test

import "testing"

// The page pauses and resumes the organization, a role and a task, and shows what is paused. What it
// asks for holds: the gateway answers the same.
func TestPage_Pauses(t *testing.T) {
	s := startServer(t)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")

	p.goTo("#/organization")
	p.confirmPause("Pause the organization", "fire drill")
	p.waitText("Resume the organization")
	var pause struct {
		All *struct {
			By, Reason string
		} `json:"all"`
	}
	decode(t, s.send(t, "ann", "GET", "/api/v1/pause", ""), &pause)
	if pause.All == nil || pause.All.Reason != "fire drill" {
		t.Errorf("the organization: %+v", pause.All)
	}
	var task struct{ ID string }
	decode(t, s.send(t, "ann", "POST", "/api/v1/tasks", `{"text":"pay 1"}`), &task) // it waits for an approval
	p.waitText("The organization is paused.")
	p.waitText("fire drill")
	p.confirmPause("Resume the organization", "")
	p.waitText("Pause the organization")
	pause.All = nil
	if decode(t, s.send(t, "ann", "GET", "/api/v1/pause", ""), &pause); pause.All != nil {
		t.Errorf("the organization is still paused: %+v", pause.All)
	}

	p.goTo("#/roles/clerk")
	p.confirmPause("Pause", "too eager")
	p.waitText("The role is paused.")
	var role struct {
		SuspendedAt string `json:"suspendedAt"`
	}
	if decode(t, s.send(t, "ann", "GET", "/api/v1/roles/clerk", ""), &role); role.SuspendedAt == "" {
		t.Error("the role is not paused")
	}
	p.confirmPause("Resume", "")
	p.wait(`!document.body.innerText.includes("The role is paused.")`)

	p.goTo("#/task/" + task.ID)
	p.confirmPause("Pause", "wrong customer")
	p.waitText("wrong customer")
	p.confirmPause("Resume", "")
	p.wait(`[...document.querySelectorAll(".tools button")].some((b) => b.textContent === "Pause")`)
	p.checkProblems("pauses")
}

// The dialog of a pause says what stops and what does not, and that no reason is needed.
func TestPage_PauseSaysWhatStops(t *testing.T) {
	s := startServer(t)
	task := startPayment(t, s)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	for place, stops := range map[string]string{"organization": "all agents and callers", "roles/clerk": "the agents and callers of this role", "task/" + task: "the agents of this task"} {
		p.goTo("#/" + place)
		find := `[...document.querySelectorAll(".tools button")].find((b) => b.textContent.startsWith("Pause"))`
		p.wait(find + " !== undefined")
		p.eval(find + ".click(); 0")
		p.waitText("Stops: " + stops)
		p.waitText("Goes on: calls and answers that have begun, to their end. Approvals can be given, and keep their deadlines.")
		p.waitText("Reason (optional)")
		p.checkAccessible(axe(t), "pause of "+place)
		p.press("\x1b")
		p.wait(`!document.getElementById("dialog").open`)
	}
	p.checkProblems("dialogs of pauses")
}

// confirmPause clicks a button beside the title and gives the reason.
func (p *tab) confirmPause(button, reason string) {
	p.t.Helper()
	find := `[...document.querySelectorAll(".tools button")].find((b) => b.textContent === "` + button + `")`
	p.wait(find + " !== undefined")
	p.eval(find + ".click(); 0")
	p.wait(`document.getElementById("dialog").open`)
	p.press(reason)
	p.click("#dialog button[type=submit]")
	p.wait(`!document.getElementById("dialog").open`)
}
