package webpage_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/test/corpus"
)

// attack is a text of a collection that has the shape of an attack, or a few short ones in lines.
type attack struct{ from, text string }

// attacks returns all texts of all collections in this repository.
func attacks(t *testing.T) (all []attack) {
	t.Helper()
	lists := map[string][]string{"naughty": corpus.NaughtyStrings(), "paths": corpus.TraversalPaths()}
	for _, d := range corpus.JSONDocuments() {
		lists["JSON"] = append(lists["JSON"], string(d.Text))
	}
	for name, file := range map[string]string{
		"SQL": "modules/toolbox/testdata/sql_injection.jsonl", "commands": "builtin/testdata/command_injection.jsonl", "URLs": "builtin/testdata/ssrf_urls.jsonl",
		"confusables": "org/testdata/unicode_intentional_confusables.jsonl", "poisoned tools": "modules/mcpclient/testdata/mcp_tool_poisoning.jsonl",
	} {
		lists[name] = jsonTexts(t, "../../../"+file)
	}
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		for part := range slices.Chunk(lists[name], 200) {
			all = append(all, attack{name, clean(strings.Join(part, "\n"))})
		}
	}
	return all
}

// jsonTexts returns all texts in a file with a JSON value in each line.
func jsonTexts(t *testing.T, name string) (texts []string) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var value any
		decode(t, lines.Text(), &value)
		texts = appendTexts(texts, value)
	}
	if lines.Err() != nil || len(texts) == 0 {
		t.Fatalf("%s has %d texts: %v", name, len(texts), lines.Err())
	}
	return texts
}

// appendTexts appends the texts in a JSON value.
func appendTexts(texts []string, value any) []string {
	switch v := value.(type) {
	case string:
		return append(texts, v)
	case []any:
		for _, one := range v {
			texts = appendTexts(texts, one)
		}
	case map[string]any:
		for _, one := range v {
			texts = appendTexts(texts, one)
		}
	}
	return texts
}

// clean returns a text without what the gateway rejects in a text: zero bytes, and what is not
// UTF-8.
func clean(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\x00", "?")
}

// markup is what a browser would make elements and programs of, if the page let it. Each text of
// these tests begins with it: a field that cuts long texts shows it in any case.
const markup = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script><b>owned</b>`

// poisonedTools are tools whose names and descriptions come from outside.
const poisonedTools = `
---
kind: source
name: web
type: http
baseUrl: http://127.0.0.1:9
---
kind: tool
name: poisoned
type: http
source: web
method: GET
path: /
description: %s
---
kind: toolset
name: outside
tools: [poisoned]
`

// Hostile texts of all collections reach the fields of the page as text: they add no element and
// do not change the title.
func TestPage_ShowsHostileTextsAsText(t *testing.T) {
	all := attacks(t)
	poison := all[slices.IndexFunc(all, func(a attack) bool { return a.from == "poisoned tools" })]
	s := startServer(t, fmt.Sprintf(poisonedTools, quoted(markup+oneLine(poison.text)[:2000])))
	var places []string
	for i, a := range all {
		places = append(places, "task/"+startTask(t, s, "carry "+markup+a.text))
		if i%5 == 0 {
			text := clean(markup + a.text[:min(len(a.text), 350)])
			s.send(t, "ann", "POST", "/api/v1/roles", fmt.Sprintf(`{"name":"role %d","description":%s,"rolePrompt":%s,"toolGroups":[]}`, i, quoted(oneLine(text)), quoted(text)))
			places = append(places, fmt.Sprintf("roles/role %d", i))
		}
	}
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.eval(`window.confirm = window.alert = window.prompt = () => { document.title = "owned"; }; 0`)
	places = append(places, strings.Replace(places[0], "task/", "organization/", 1), "tools/outside?tool=poisoned", "access?role=clerk&tool=poisoned", "organization?form=Picture")
	for _, place := range append(places, screens...) {
		p.goTo("#/" + strings.ReplaceAll(place, " ", "%20"))
		p.checkElements(place)
		p.checkProblems(place)
	}
	if seen := p.eval(`window.seenMarkup`); seen != true {
		t.Error("no screen has shown a hostile text")
	}
}

// checkElements reports elements and attributes that the page does not make itself, and a changed
// title.
func (p *tab) checkElements(place string) {
	p.t.Helper()
	found := p.eval(`(() => {
		window.seenMarkup ||= document.querySelector("main").innerText.includes("onerror=");
		const known = new Set("A ARTICLE ASIDE BODY BUTTON CAPTION CODE DATALIST DD DETAILS DIALOG DIV DL DT FIELDSET FORM H1 H2 H3 HEAD HEADER HR HTML IMG INPUT KBD LABEL LEGEND LI LINK MAIN META NAV NOSCRIPT OPTION P PRE SCRIPT SECTION SELECT SMALL SPAN STRONG SUMMARY TABLE TBODY TD TEXTAREA TH THEAD TIME TITLE TR UL CANVAS svg circle g line path rect text title tspan".split(" "));
		const strange = (e) => !known.has(e.tagName) || [...e.attributes].some((a) => a.name.startsWith("on")) || /^javascript:/i.test(e.getAttribute("href") ?? "")
			|| e.tagName === "SCRIPT" && !e.src.startsWith(new URL("ui/app/", document.baseURI).href) || e.tagName === "IMG" && !e.matches(".brand img, img.preview")
			|| e.tagName === "STRONG" && e.childElementCount > 1;
		return [...document.querySelectorAll("*")].filter(strange).map((e) => e.outerHTML.slice(0, 200)).join("\n") + (document.title.endsWith("rolecall") ? "" : "\ntitle " + document.title);
	})()`)
	if found != "" {
		p.t.Errorf("%s: a text has become an element:\n%v", place, found)
	}
}

// quoted returns a text as JSON.
func quoted(text string) string {
	out, _ := json.Marshal(text) // texts always marshal
	return string(out)
}

// oneLine returns a text without line breaks.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
