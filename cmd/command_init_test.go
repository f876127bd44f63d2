package cmd

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runIn runs a command line with the variables of env and the stdin in.
func runIn(t *testing.T, env map[string]string, in string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, log bytes.Buffer
	c := &common{launcher: launcher, in: strings.NewReader(in), out: &out, err: &log, env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
	status = run(t.Context(), c, args)
	return status, out.String(), log.String()
}

// Each variant is a valid configuration, also without a key.
func TestInit_WritesValidConfigurations(t *testing.T) {
	for _, model := range starterModels {
		t.Run(model, func(t *testing.T) {
			t.Chdir(t.TempDir())
			status, stdout, stderr := runIn(t, nil, "", "init", "desk", "--model", model)
			if status != 0 || !strings.HasPrefix(stdout, filepath.Join("desk", starterConfig)+"\n") || !strings.Contains(stderr, "\nNext:\n") {
				t.Fatalf("status %d\n%s%s", status, stdout, stderr)
			}
			if tests := strings.Contains(stderr, " model test -f "+filepath.Join("desk", starterConfig)+" main\n"); tests != (model != "script") {
				t.Errorf("a test of the model is suggested: %v\n%s", tests, stderr)
			}
			if status, stdout, stderr := runIn(t, nil, "", "check", "-f", "desk"); status != 0 || !strings.Contains(stdout, "2 roles, 1 model") {
				t.Errorf("status %d\n%s%s", status, stdout, stderr)
			}
		})
	}
}

// The commands that init prints work at once, and the script shows a denied call.
func TestInit_NextCommandsWork(t *testing.T) {
	t.Chdir(t.TempDir())
	status, stdout, stderr := runIn(t, nil, "", "init", "--json")
	var shown starterOutput
	if err := json.Unmarshal([]byte(stdout), &shown); status != 0 || err != nil || len(shown.Commands) != 2 || len(shown.Files) != 2 {
		t.Fatalf("status %d, %v\n%s%s", status, err, stdout, stderr)
	}
	if want := programName() + ` run -f org.yaml "Remember the milk"`; shown.Commands[0] != want {
		t.Fatalf("the next command is %q, want %q", shown.Commands[0], want)
	}
	status, stdout, stderr = runIn(t, nil, "", "run", "-f", "org.yaml", "Remember the milk")
	if status != 0 || !strings.Contains(stdout, "The writer wrote note.txt, 18 bytes.\nThe keeper stored artifact:") || !strings.Contains(stdout, "It may not write files: tool_not_available.") {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
	if status, stdout, stderr := runIn(t, nil, "", "can", "-f", "org.yaml", "--who", "write_file"); status != 0 || !strings.Contains(stdout, "writer") || strings.Contains(stdout, "keeper") {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
}

// Without --model, the variables with keys choose.
func TestInit_ChoosesModelByKey(t *testing.T) {
	for key, want := range map[string]string{"": "type: script\n", "OPENAI_API_KEY": "type: openai\n", "ANTHROPIC_API_KEY": "type: anthropic\n", "GEMINI_API_KEY": "type: gemini\n"} {
		dir := filepath.Join(t.TempDir(), "new", "er")
		if status, _, stderr := runIn(t, map[string]string{key: "k"}, "", "init", dir); status != 0 || strings.Contains(stderr, "Set the key") {
			t.Fatalf("%s: status %d, %s", key, status, stderr)
		}
		text, err := os.ReadFile(filepath.Join(dir, starterConfig))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: no %q in\n%s", key, want, text)
		}
	}
}

// A gateway in the environment does not run the printed commands, which are for files.
func TestInit_CommandsUnsetGateway(t *testing.T) {
	env := map[string]string{urlVariable: "http://127.0.0.1:1", tokenVariable: "rc_x"}
	if status, _, stderr := runIn(t, env, "", "init", t.TempDir()); status != 0 || !strings.Contains(stderr, "  ROLECALL_URL= ROLECALL_TOKEN= "+programName()+" run -f ") {
		t.Errorf("status %d: %s", status, stderr)
	}
}

// Init overwrites nothing, and then writes nothing.
func TestInit_KeepsExistingFiles(t *testing.T) {
	for _, taken := range []string{starterConfig, starterScript} {
		dir := t.TempDir()
		path := filepath.Join(dir, taken)
		if err := os.Symlink("elsewhere", path); err != nil {
			t.Fatal(err)
		}
		status, stdout, stderr := runIn(t, nil, "", "init", dir)
		if entries, err := os.ReadDir(dir); status != 1 || stdout != "" || !strings.Contains(stderr, path) || err != nil || len(entries) != 1 {
			t.Errorf("%s: status %d, %v, %v\n%s%s", taken, status, entries, err, stdout, stderr)
		}
	}
}

func TestInit_RejectsUsage(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		status int
		output string
		args   []string
	}{
		{2, `--model "olama" is unknown (did you mean "ollama"?)`, []string{"init", dir, "--model", "olama"}},
		{2, "there are openai, anthropic", []string{"init", dir, "--model", "zzz"}},
		{2, "--model is empty", []string{"init", dir, "--model", ""}},
		{2, "init reads no configuration", []string{"init", dir, "-f", "x"}},
		{2, "takes at most one directory", []string{"init", dir, "b"}},
		{2, "an argument is empty", []string{"init", ""}},
		{1, "not a directory", []string{"init", filepath.Join(file, "below")}},
	} {
		if status, _, stderr := runIn(t, nil, "", test.args...); status != test.status || !strings.Contains(stderr, test.output) {
			t.Errorf("%q: status %d, want %d with %q: %s", test.args, status, test.status, test.output, stderr)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}
