package webpage_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"

	"github.com/rolecall/rolecall/internal/test/oidctest"
)

// Each screen shows that it loads while the gateway takes its time, and then what it has loaded.
func TestPage_ScreensShowThatTheyLoad(t *testing.T) {
	s := startServer(t)
	task := startTask(t, s, "deny 1")
	hold := make(chan chan struct{}, 1) // has the channel whose end lets requests go on
	free := make(chan struct{})
	close(free)
	hold <- free
	p := openTab(t, newBrowser(t), s.behind(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, "/api/") && r.FormValue("follow") == "" || r.URL.Path == "/metrics" {
			held := <-hold
			hold <- held
			select {
			case <-held:
			case <-r.Context().Done():
			}
		}
		return false
	}))
	p.signIn("ann")
	for _, place := range append([]string{"task/" + task, "roles/clerk", "approvals"}, screens...) {
		<-hold
		held := make(chan struct{})
		hold <- held
		p.eval(fmt.Sprintf("location.hash = %q; 0", "#/"+place))
		p.wait(`document.querySelector("main .skeleton[role=status]") !== null && document.querySelector("h1").innerText !== ""`)
		if shown := p.eval(`document.querySelector("main table, main .viewport, main form, main .empty, main .failure, main[data-place]") !== null`); shown == true {
			t.Errorf("%s shows data that it cannot have:\n%s", place, p.text())
		}
		close(held)
		p.wait(fmt.Sprintf(`document.querySelector("main").dataset.place === %q && document.querySelector("main .skeleton, main .failure") === null`, "#/"+place))
		p.checkProblems(place)
	}
}

// An approver with a telephone reads all of what would run and reaches each button. No screen of
// an operator is wider than the telephone.
func TestPage_NarrowScreen(t *testing.T) {
	s := startServer(t)
	amount := strings.Repeat("9", 120) + "<img/src=x/onerror=document.title='owned'>"
	task := startTask(t, s, "deny 1")
	s.send(t, "ann", "POST", "/api/v1/tasks", fmt.Sprintf(`{"text":%s}`, quoted("pay "+amount)))
	p := openTab(t, newBrowser(t), s)
	call(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: 360, Height: 740, DeviceScaleFactor: 2, Mobile: true})
	p.signIn("fay")
	p.goTo("#/approvals")
	p.waitText("wants to call write_file")
	p.checkNarrow("approvals")
	p.checkElements("approvals")
	if p.eval(`[...document.querySelectorAll("aside.panel .json")].some((a) => a.innerText.includes(`+quoted(quoted(amount))+`) && a.scrollWidth <= a.clientWidth)`) != true {
		t.Errorf("the argument is not shown whole:\n%s", p.text())
	}
	unreachable := p.eval(`[...document.querySelectorAll("main button:not(.copy), main input")].filter((b) => {
		b.scrollIntoView({block: "center"});
		const r = b.getBoundingClientRect(), hit = document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2);
		return r.left < 0 || r.right > innerWidth || !b.contains(hit) || b.matches("button") && r.height < 24;
	}).map((b) => b.outerHTML).join("\n")`)
	if unreachable != "" {
		t.Errorf("out of reach: %v", unreachable)
	}
	p.eval(`[...document.querySelectorAll("main button")].find((b) => b.innerText.startsWith("Approve")).click(); 0`)
	p.wait(`document.getElementById("dialog").open`)
	p.checkNarrow("the dialog")
	p.press("\r")
	p.waitText("No call waits for your approval.")
	p.eval(`[...document.querySelectorAll("button")].find((b) => b.innerText === "Sign out").click(); 0`)
	p.wait(`document.querySelector("input[name=token]") !== null`)
	p.eval(fmt.Sprintf(`document.querySelector("input[name=token]").value = %q; document.querySelector("form button.primary").click(); 0`, tokenOf("ann")))
	p.waitAcrossLoad(`document.querySelector("nav") !== null && document.querySelector("main").dataset.place !== undefined`)
	for _, place := range append([]string{"task/" + task, "task/" + task + "?event=" + deniedEvent(t, s), "roles/clerk", "roles/payer", "organization/" + task, "organization?form=Picture", "access?role=clerk&tool=run_command", "tools/workspace?tool=read_file", "record?event=" + deniedEvent(t, s)}, screens...) {
		p.goTo("#/" + place)
		p.checkNarrow(place)
	}
}

// checkNarrow reports that the page is wider than its window.
func (p *tab) checkNarrow(place string) {
	p.t.Helper()
	if wide := p.eval(`document.documentElement.scrollWidth <= innerWidth ? "" : [...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().right > innerWidth && !e.closest(".scroll, .matrix-box, .viewport, .json")).map((e) => e.outerHTML.slice(0, 160)).slice(0, 5).join("\n") || "wide"`); wide != "" {
		p.t.Errorf("%s is wider than the window:\n%v", place, wide)
	}
}

// The form has a button for each issuer with which users sign in, and none without. A user comes back
// to the place that was asked for. The page explains an attempt that fails in its own words.
func TestPage_SignsInWithAnIssuer(t *testing.T) {
	idp := oidctest.NewSignInIssuer(t)
	idp.Secret = "" // a public client
	s := startServer(t, fmt.Sprintf(`auth:
  - {name: corp, issuer: %s, audience: [api], clientId: %s, roles: [{claim: /groups, value: staff, role: reader}]}
`, idp.URL, idp.Client))
	p := openTab(t, newBrowser(t), s)
	p.open("/#/access")
	p.wait(`[...document.querySelectorAll("a")].some((a) => a.innerText === "Sign in with corp")`)
	const choose = `[...document.querySelectorAll("a")].find((a) => a.innerText === "Sign in with corp").click(); 0`
	idp.Break = func(claims map[string]any) { claims["groups"] = []string{"guests"} }
	p.eval(choose)
	p.waitAcrossLoad(`document.body.innerText.includes("you have no role here") && location.pathname + location.hash === "/#/access"`)
	p.checkAccessible(axe(t), "failed sign-in")
	idp.Break = nil
	p.wait(`[...document.querySelectorAll("a")].some((a) => a.innerText === "Sign in with corp")`)
	p.eval(choose)
	p.waitAcrossLoad(`document.body.innerText.includes("corp:ann in role reader") && location.hash === "#/access"`)
	p.open("/?again#/sign-in-failed?code=%3Cb%3Eowned")
	p.waitText("in role reader")
	if text := p.text(); strings.Contains(text, "owned") {
		t.Errorf("a link shows its text:\n%s", text)
	}

	without := openTab(t, newBrowser(t), startServer(t))
	without.open("/")
	without.wait(`performance.getEntriesByType("resource").some((e) => e.name.endsWith("ui/issuers") && e.responseStatus === 200)`)
	if text := without.text(); strings.Contains(text, "Sign in with") {
		t.Errorf("without an issuer:\n%s", text)
	}
}

// The program with the page is built and serves it where there is no network and no Node, of the
// files that a clone has.
func TestPage_NeedsNoNodeAndNoNetwork(t *testing.T) {
	s := startServer(t)
	if os.Geteuid() != 0 {
		t.Skip("only root starts a program without a network")
	}
	s.kill()
	if out, err := exec.CommandContext(t.Context(), "git", "ls-files", "--others", "../../../gateway").Output(); err == nil && len(out) > 0 {
		t.Errorf("a clone lacks\n%s", out)
	}
	path, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	tools := t.TempDir()
	if err := os.Symlink(path, filepath.Join(tools, "go")); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "rolecall")
	build := exec.CommandContext(t.Context(), "unshare", "--net", "go", "build", "-ldflags=-s -w", "-o", program, "github.com/rolecall/rolecall/cmd/rolecall")
	build.Env = append(os.Environ(), "PATH="+tools+":"+t.TempDir(), "GOPROXY=off")
	if build.Path, err = exec.LookPath("unshare"); err != nil {
		t.Fatal(err)
	}
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	s.run(t, tools, build.Path, "--net", program)
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(s.dir, "data", "rolecall.sock"))
	}}}
	for path, want := range map[string]string{"/": "ui/app/main.js", "/ui/app/main.js": "lit-html", "/ui/vendor/lit-html/lit-html.js": "createPolicy"} {
		request, err := http.NewRequestWithContext(t.Context(), "GET", "http://rolecall"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept", "text/html")
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v %s %.300s", path, err, answer.Status, text)
		}
	}
}
