package cmd

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// deployDir has the files for containers, Kubernetes and systemd.
const deployDir = "../examples/deploy"

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// checkCommandLine reports arguments that the program does not accept.
func checkCommandLine(t *testing.T, args []string) {
	t.Helper()
	root := newRootCommand(&common{out: new(bytes.Buffer), err: new(bytes.Buffer), in: strings.NewReader("")})
	cmd, rest, err := root.Find(args)
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err == nil {
		err = cmd.ValidateArgs(cmd.Flags().Args())
	}
	if err == nil && cmd == root && !cmd.Flags().Changed("version") {
		err = errUnknownCommand(cmd, strings.Join(args, " "))
	}
	if err != nil {
		t.Errorf("rolecall %q: %v", args, err)
	}
}

func TestCheckCommandLine_FindsWhatIsWrong(t *testing.T) {
	for _, line := range []string{"server", "serve --adress x", "check extra", ""} {
		inner := new(testing.T)
		checkCommandLine(inner, strings.Fields(line))
		if !inner.Failed() {
			t.Errorf("rolecall %s is accepted", line)
		}
	}
}

// documentedCommand matches a command line of rolecall, in a document or a comment, up to
// its own comment.
var documentedCommand = regexp.MustCompile(`(?m)^(?:#  |    )[^\n#]*?(?:-- |/|\brun --rm |\b)rolecall(?:-programs)?[ ]((?:check|demo|serve|task|token|version)\b[^\n#|]*)`)

// Each command that docs/install.md and the files for deployment name is one of the
// program, with its flags.
func TestInstall_NamesCommandsOfProgram(t *testing.T) {
	for name, want := range map[string]int{"../docs/install.md": 8, deployDir + "/kubernetes.yaml": 2, deployDir + "/rolecall.service": 1} {
		found := documentedCommand.FindAllStringSubmatch(readText(t, name), -1)
		for _, match := range found {
			checkCommandLine(t, strings.Fields(match[1]))
		}
		if len(found) != want {
			t.Errorf("%s has %d commands, want %d: %q", name, len(found), want, found)
		}
	}
}

// The commands around those of the program exist, too.
func TestInstall_NamesFilesOfRepository(t *testing.T) {
	text := readText(t, "../docs/install.md")
	for _, match := range regexp.MustCompile(`go install github.com/rolecall/rolecall/(\S+)@|docker build -f (\S+)|\]\(\.\./([^)#]+)`).FindAllStringSubmatch(text, -1) {
		path := match[1] + match[2] + match[3]
		if _, err := os.Stat(filepath.Join("..", path)); err != nil {
			t.Error(err)
		}
	}
	for _, match := range regexp.MustCompile(`\bmake ([a-z]+)`).FindAllStringSubmatch(text, -1) {
		if !strings.Contains(readText(t, "../Makefile"), "\n"+match[1]+":") {
			t.Errorf("there is no make %s", match[1])
		}
	}
}

// The image starts the program with arguments that it accepts, not as root.
func TestDockerfile_StartsProgram(t *testing.T) {
	text := readText(t, deployDir+"/Dockerfile")
	command := func(instruction string) []string {
		_, rest, _ := strings.Cut(text, "\n"+instruction)
		_, rest, _ = strings.Cut(rest, "[")
		list, _, _ := strings.Cut(rest, "]")
		var args []string
		if err := json.Unmarshal([]byte("["+list+"]"), &args); err != nil {
			t.Fatal(instruction, err)
		}
		return args
	}
	entry, health := command("ENTRYPOINT"), command("HEALTHCHECK")
	if want := []string{"/usr/bin/rolecall"}; !slices.Equal(entry, want) || !slices.Equal(health[:1], want) {
		t.Errorf("entry point %q, health check %q", entry, health)
	}
	checkCommandLine(t, command("CMD"))
	checkCommandLine(t, health[1:])
	if !strings.Contains(text, "\nUSER 65532:65532\nWORKDIR /data\n") {
		t.Error("the image runs as root, or its user does not own the data")
	}
}

// statefulSet has the fields of the manifest that depend on the program.
type statefulSet struct {
	Kind string
	Data map[string]string // of the config map
	Spec struct {
		Replicas int
		Template struct {
			Spec struct {
				SecurityContext struct{ RunAsNonRoot bool }
				Containers      []podContainer
			}
		}
		VolumeClaimTemplates []map[string]any
	}
}

// podContainer is a container of the manifest.
type podContainer struct {
	Args                                        []string
	Ports                                       []struct{ ContainerPort int }
	StartupProbe, LivenessProbe, ReadinessProbe struct {
		HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
	}
	SecurityContext struct {
		AllowPrivilegeEscalation *bool
		ReadOnlyRootFilesystem   bool
		Capabilities             struct{ Drop []string }
	}
}

// UnmarshalYAML reads the names of fields as Kubernetes spells them, without their case.
func (s *statefulSet) UnmarshalYAML(node *yaml.Node) error {
	lowerKeys(node)
	type plain statefulSet
	return node.Decode((*plain)(s))
}

// lowerKeys writes keys as the YAML library expects those of fields without a tag.
func lowerKeys(node *yaml.Node) {
	for i, child := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 0 && child.Value != "httpGet" {
			child.Value = strings.ToLower(child.Value)
		}
		lowerKeys(child)
	}
}

// manifests reads kubernetes.yaml.
func manifests(t *testing.T) map[string]statefulSet {
	t.Helper()
	found := map[string]statefulSet{}
	decoder := yaml.NewDecoder(strings.NewReader(readText(t, deployDir+"/kubernetes.yaml")))
	for {
		var m statefulSet
		if err := decoder.Decode(&m); err != nil {
			break
		}
		found[m.Kind] = m
	}
	if len(found) != 3 {
		t.Fatalf("%d manifests", len(found))
	}
	return found
}

// The manifest starts the program with arguments that it accepts, one process on its data,
// without privileges. Its probes are routes of the gateway.
func TestKubernetes_StartsProgram(t *testing.T) {
	set := manifests(t)["StatefulSet"].Spec
	c := set.Template.Spec.Containers[0]
	checkCommandLine(t, c.Args)
	if set.Replicas != 1 || len(set.VolumeClaimTemplates) != 1 || !set.Template.Spec.SecurityContext.RunAsNonRoot {
		t.Errorf("%d replicas, %d volumes, not root: %t", set.Replicas, len(set.VolumeClaimTemplates), set.Template.Spec.SecurityContext.RunAsNonRoot)
	}
	if s := c.SecurityContext; s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || !s.ReadOnlyRootFilesystem || !slices.Equal(s.Capabilities.Drop, []string{"ALL"}) {
		t.Errorf("the container has privileges: %+v", s)
	}
	if address := c.Args[slices.Index(c.Args, "--addr")+1]; address != "0.0.0.0:7464" || c.Ports[0].ContainerPort != 7464 {
		t.Errorf("it serves %s and exposes %v", address, c.Ports)
	}
	for _, path := range []string{c.StartupProbe.HTTPGet.Path, c.LivenessProbe.HTTPGet.Path, c.ReadinessProbe.HTTPGet.Path} {
		if status := getRoute(t, path); status != http.StatusOK {
			t.Errorf("a probe of %q gets %d", path, status)
		}
	}
}

// getRoute asks a gateway without a token and returns the status of its answer.
func getRoute(t *testing.T, path string) int {
	t.Helper()
	c := &common{launcher: launcher, data: t.TempDir(), env: func(string) (string, bool) { return "", false }}
	s, err := openSession(c, &terminal{out: new(bytes.Buffer)}, sessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.MarkReady()
	h, err := s.Handler()
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code
}

// The configuration in the manifest is valid.
func TestKubernetes_ConfigurationIsValid(t *testing.T) {
	dir := t.TempDir()
	for name, text := range manifests(t)["ConfigMap"].Data {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out, log bytes.Buffer
	env := map[string]string{"TOKEN_SHA256": strings.Repeat("0a", 32), "OPENAI_API_KEY": "k"}
	c := &common{launcher: launcher, in: strings.NewReader(""), out: &out, err: &log, env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
	if status := run(t.Context(), c, []string{"check", "-f", dir}); status != 0 {
		t.Errorf("%d\n%s%s", status, out.String(), log.String())
	}
}

// The unit starts the program with arguments that it accepts, and forbids nothing that the
// sandbox needs.
func TestSystemdUnit_StartsProgram(t *testing.T) {
	text := readText(t, deployDir+"/rolecall.service")
	_, start, _ := strings.Cut(text, "\nExecStart=/usr/local/bin/rolecall ")
	start, _, _ = strings.Cut(start, "\n")
	checkCommandLine(t, strings.Fields(start))
	for _, wanted := range []string{"DynamicUser=yes", "StateDirectory=rolecall", "ProtectSystem=strict", "NoNewPrivileges=yes", "RestrictNamespaces=no"} {
		if !strings.Contains(text, "\n"+wanted+"\n") {
			t.Errorf("no %s", wanted)
		}
	}
	for _, forbidden := range []string{"ProtectHostname", "ProtectKernelTunables", "ProtectControlGroups", "PrivateUsers", "SystemCallFilter"} {
		if strings.Contains(text, "\n"+forbidden+"=") {
			t.Errorf("%s keeps programs from running in the sandbox", forbidden)
		}
	}
}

// systemd accepts the unit.
func TestSystemdUnit_IsValid(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	unit := filepath.Join(t.TempDir(), "rolecall.service")
	text := strings.ReplaceAll(readText(t, deployDir+"/rolecall.service"), "=/usr/local/bin/rolecall ", "=/bin/true ")
	text = strings.ReplaceAll(text, "\nDelegateSubgroup=main\n", "\n") // unknown before systemd 254
	if err := os.WriteFile(unit, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", unit).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}
