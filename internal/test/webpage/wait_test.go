package webpage_test

import "testing"

// The organization says what an agent waits for until it is decided, the list of approvals shows the
// arguments, and the tools show their flags.
func TestPage_ShowsWaitsArgumentsAndFlags(t *testing.T) {
	s := startServer(t)
	startPayment(t, s)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.goTo("#/organization")
	p.waitText("for approval of write_file")
	p.goTo("#/approvals")
	p.wait(`document.querySelector(".request .args")?.textContent === '{"path":"payment.txt","content":"7"}'`)
	p.goTo("#/tools/workspace?tool=read_file")
	p.waitText("untrusted, private")
	p.goTo("#/organization")
	p.waitText("for approval of write_file")
	var page struct{ Items []struct{ ID string } }
	decode(t, s.send(t, "ann", "GET", "/api/v1/approvals", ""), &page)
	s.send(t, "ann", "POST", "/api/v1/approvals/"+page.Items[0].ID, `{"action":"deny","reason":"twice"}`)
	p.wait(`!document.body.innerText.includes("for approval of write_file")`)
	p.checkProblems("waits")
}
