package webpage_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
)

// pictures is where TestPage_Pictures writes, "" for nowhere.
var pictures = flag.String("pictures", "", "write a picture of each screen into this directory")

// A picture of each screen, wide and narrow, light and dark, for people to look at. It runs with
// -pictures DIR only.
func TestPage_Pictures(t *testing.T) {
	if *pictures == "" {
		t.Skip("it needs -pictures DIR")
	}
	s := startServer(t)
	s.send(t, "ann", "POST", "/api/v1/roles", `{"name":"writer","description":"Writes reports of the day","toolGroups":["workspace:read"],"grant":["console"]}`)
	startTask(t, s, "carry the report of the day")
	task := startTask(t, s, "deny 3")
	s.send(t, "ann", "POST", "/api/v1/tasks", `{"text":"agents 5"}`)
	for _, amount := range []string{"20", "4000"} {
		s.send(t, "ann", "POST", "/api/v1/tasks", `{"text":"pay `+amount+`"}`)
	}
	approver, p := openTab(t, newBrowser(t), s), openTab(t, newBrowser(t), s)
	p.open("/")
	p.pictures("sign-in")
	approver.signIn("fay")
	approver.goTo("#/approvals")
	approver.waitText("wants to call write_file")
	approver.pictures("approvals-of-fay")
	approver.click("aside.panel .buttons button")
	approver.wait(`document.querySelector("aside.panel [name=args]") !== null`)
	approver.eval(`(() => { const f = [...document.querySelectorAll("[name=args]")].at(-1); f.value = "60"; f.dispatchEvent(new Event("input", {bubbles: true})); })(); 0`)
	approver.waitText("The agent is told of the change.")
	approver.pictures("arguments-edited")
	approver.eval(`[...document.querySelectorAll("aside.panel .buttons button")].at(-1).click(); 0`)
	approver.wait(`document.getElementById("dialog").open`)
	approver.press("\r")
	approver.waitText("ran without an error")
	approver.pictures("approvals-decided")
	p.signIn("ann")
	places := []string{
		"task/" + task, "task/" + task + "?event=" + deniedEvent(t, s), "roles/writer", "roles/payer", "organization/" + task, "organization?form=Picture",
		"access?role=clerk&tool=run_command", "access?tool=read_file", "tools/workspace?tool=read_file", "record?event=" + deniedEvent(t, s), "approvals",
	}
	for _, place := range append(places, screens...) {
		p.goTo("#/" + place)
		p.pictures(strings.NewReplacer("/", "-", "?", "-", "=", "-", "&", "-", task, "ID").Replace(place))
	}
	p.goTo("#/roles/writer")
	p.check("Use workspace")
	p.check("Grant org_management")
	p.waitText("gains")
	p.pictures("role-changed")
	p.goTo("#/roles")
	p.eval(`document.querySelector(".tools button.primary").click(); 0`)
	p.pictures("role-created")
	p.press("\x1b")
	p.eval(`document.dispatchEvent(new KeyboardEvent("keydown", {key: "k", ctrlKey: true, bubbles: true})); 0`)
	p.press("r")
	p.pictures("palette")
	failed := openTab(t, newBrowser(t), s)
	failed.open("/#/sign-in-failed?code=sign_in_failed")
	failed.pictures("sign-in-failed")
}

// pictures writes pictures of all that the tab shows, also below the fold.
func (p *tab) pictures(name string) {
	p.t.Helper()
	for _, width := range []int64{1280, 360} {
		p.setSize(width, 860)
		height := p.eval(`document.documentElement.scrollHeight`).(float64)
		p.setSize(width, int64(min(max(height, 860), 4000)))
		for _, theme := range []string{"light", "dark"} {
			p.eval(fmt.Sprintf(`document.documentElement.dataset.theme = %q; new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))).then(() => 0)`, theme))
			shot := call(p, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: "png"})
			if err := os.WriteFile(filepath.Join(*pictures, fmt.Sprintf("%s-%d-%s.png", name, width, theme)), shot.Data, 0o644); err != nil {
				p.t.Fatal(err)
			}
		}
	}
}

func (p *tab) setSize(width, height int64) {
	p.t.Helper()
	call(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1})
}
