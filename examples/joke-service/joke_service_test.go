package main

import (
	"bytes"
	"os"
	"testing"
)

// docs/tool-services.md contains the configuration and the service of this example unchanged.
func TestJokeService_MatchesDocument(t *testing.T) {
	document, err := os.ReadFile("../../docs/tool-services.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, functions, _ := bytes.Cut(program, []byte("func main"))
	organization, err := os.ReadFile("organization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"main.go": append([]byte("func main"), functions...), "organization.yaml": organization} {
		if !bytes.Contains(document, bytes.TrimSpace(text)) {
			t.Errorf("docs/tool-services.md does not contain %s unchanged", name)
		}
	}
}

func TestPickJoke(t *testing.T) {
	for topic, want := range map[string]string{"Programming": jokes[0].joke, "two llamas": jokes[1].joke, "food": jokes[2].joke, "": jokes[2].joke} {
		if got := pickJoke(topic); got != want {
			t.Errorf("%q: %q", topic, got)
		}
	}
}
