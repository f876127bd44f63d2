package config_test

import (
	"bytes"
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/yamldoc"
)

// secretDocuments uses a secret file in each field that accepts one.
const secretDocuments = `{kind: model, name: m, type: openai, model: gpt, apiKey: "${file:secrets/key}", baseURL: "https://${file:secrets/word}.example/v1"}
---
{kind: mcpServer, name: web, url: "https://a.example/?key=${file:secrets/word}", headers: {X-Key: "k ${file:secrets/word}"}, auth: {bearer: "${file:secrets/key}"}}
---
{kind: mcpServer, name: local, command: tool, env: {TOKEN: "${file:secrets/word}"}}
---
{kind: source, name: pg, type: postgres, host: "${file:secrets/word}", port: "${file:secrets/port}", user: "${file:secrets/word}", password: "${file:secrets/word}", database: "${file:secrets/word}", queryParams: {a: "${file:secrets/word}"}}
---
{kind: source, name: api, type: http, baseUrl: "https://${file:secrets/word}.example", headers: {X-A: "${file:secrets/word}"}, queryParams: {k: "${file:secrets/word}"}}
---
{kind: command, name: shell, env: {A: "${file:secrets/word}"}}
---
{kind: module, name: mod, type: fake, settings: {deep: [{token: "${file:secrets/word}"}]}}
`

// Every field for secrets and addresses accepts ${file:PATH}. The recorded files do not
// contain the secrets, and reading them again reads the secrets again.
func TestLoadFiles_ReadsSecretFiles(t *testing.T) {
	write(t, map[string]string{"conf/org.yaml": secretDocuments, "conf/secrets/key": " sk-canary\n", "conf/secrets/word": "canary\n", "conf/secrets/port": "5432"})
	cfg, err := config.LoadFiles([]string{"conf"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	m, web, local, pg, api := cfg.Models[0], cfg.MCPServers[0], cfg.MCPServers[1], cfg.Sources[0], cfg.Sources[1]
	for name, got := range map[string][2]string{
		"apiKey":       {string(m.Key), "sk-canary"},
		"key file":     {m.KeyFile + m.KeyFrom, "conf/secrets/key"},
		"baseURL":      {m.BaseURL, "https://canary.example/v1"},
		"url":          {web.URL, "https://a.example/?key=canary"},
		"headers":      {string(web.Headers["X-Key"]), "k canary"},
		"bearer":       {string(web.Headers["Authorization"]), "Bearer sk-canary"},
		"env":          {string(local.Env["TOKEN"]), "canary"},
		"source":       {pg.Host + pg.User + string(pg.Password) + pg.Database + pg.Params["a"], strings.Repeat("canary", 5)},
		"http source":  {api.BaseURL + string(api.Headers["X-A"]) + string(api.QueryParams["k"]), "https://canary.examplecanarycanary"},
		"command":      {strings.Join(cfg.Command.Env, " "), "A=canary"},
		"settings":     {string(cfg.Modules[0].Settings), `{"deep":[{"token":"canary"}]}`},
		"secret files": {cfg.SecretFiles[0].Path + " " + cfg.SecretFiles[1].Path + " " + cfg.SecretFiles[2].Path, "conf/secrets/key conf/secrets/port conf/secrets/word"},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: got %q, want %q", name, got[0], got[1])
		}
	}
	if pg.Port != 5432 || cfg.SecretFiles[2].Sum != sha256.Sum256([]byte("canary")) {
		t.Errorf("port %d, files %+v", pg.Port, cfg.SecretFiles)
	}
	if len(cfg.Files) != 1 || bytes.Contains(cfg.Files[0].Data, []byte("canary")) {
		t.Errorf("recorded %+v", cfg.Files)
	}
	writeFile(t, "conf/secrets/word", "other\r\n")
	again, err := config.ReadFiles(cfg.Files, nil)
	if err != nil || again.MCPServers[1].Env["TOKEN"] != "other" {
		t.Errorf("read again: %q, %v", string(again.MCPServers[1].Env["TOKEN"]), err)
	}
}

// A change of a secret file is found when the documents are unchanged.
func TestReloadFiles_ReadsSecretFilesAgain(t *testing.T) {
	write(t, map[string]string{"org.yaml": secretDocuments + "---\n{kind: tool, name: t, type: http, source: api, description: d, method: GET, path: /x, headers: {X-T: '${file:secrets/word}'}}\n",
		"secrets/key": "sk-1", "secrets/word": "one", "secrets/port": "1"})
	before, err := config.LoadFiles([]string{"org.yaml"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, "secrets/word", "two\r\n")
	writeFile(t, "secrets/key", "sk-2")
	after, err := before.ReloadFiles([]string{"org.yaml"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if after.Models[0].Key != "sk-2" || after.Tools[0].HTTP.Headers["X-T"] != "two" || after.Sources[0].Password != "two" {
		t.Errorf("got %q, %q, %q", string(after.Models[0].Key), string(after.Tools[0].HTTP.Headers["X-T"]), string(after.Sources[0].Password))
	}
	if before.Tools[0].Fingerprint == after.Tools[0].Fingerprint || before.Sources[0].Fingerprint == after.Sources[0].Fingerprint {
		t.Error("a fingerprint is unchanged")
	}
	if cmp.Equal(before.SecretFiles, after.SecretFiles) {
		t.Error("the digests are unchanged")
	}
	full, err := config.LoadFiles([]string{"org.yaml"}, nil)
	if diff := cmp.Diff(full, after, sameConfig()); err != nil || diff != "" {
		t.Errorf("%v (-load +reload):\n%s", err, diff)
	}
}

// An error about a secret file names the field, the document and the path. It never shows
// the content.
func TestLoadFiles_RejectsSecretFiles(t *testing.T) {
	write(t, map[string]string{
		"empty": "\n", "binary": "canary\xff", "odd": "sk-cän", "word": "canary", "over": strings.Repeat("canary..", 8<<10) + ".", "dir/x": "",
	})
	const model, server = "kind: model\nname: m\ntype: openai\nmodel: gpt\n", "kind: mcpServer\nname: s\ncommand: tool\n"
	for text, want := range map[string]string{
		model + "apiKey: ${file:gone}":              `org.yaml:5:9: apiKey: file "gone": no such file or directory`,
		model + "apiKey: ${file:dir}":               `org.yaml:5:9: apiKey: file "dir": is not a regular file`,
		model + "apiKey: ${file:over}":              `org.yaml:5:9: apiKey: file "over": has more than 64 KiB`,
		model + "apiKey: ${file:binary}":            `org.yaml:5:9: apiKey: file "binary": is not text in UTF-8`,
		model + "apiKey: ${file:empty}":             `org.yaml:5:9: apiKey: file "empty" is empty`,
		model + "apiKey: ${file:odd}":               `org.yaml:5:9: apiKey: file "odd" has no valid key`,
		model + "apiKey: x${file:word}":             `org.yaml:5:9: apiKey: must be only a variable`,
		model + "apiKey: ${file:word}${file:odd}":   `org.yaml:5:9: apiKey: must be only a variable`,
		model + "baseURL: ${file:word}":             `org.yaml:5:10: baseURL: must be an address`,
		model + "contextWindow: ${file:word}":       `org.yaml:5:16: contextWindow: must not have the content of a file`,
		"kind: role\nname: ${file:word}":            `org.yaml:2:7: name: must not have the content of a file`,
		"kind: role\nname: r\nmodel: ${file:word}":  `org.yaml:3:8: model: must not have the content of a file`,
		"kind: role\nname: r\nprompt: ${file:word}": `org.yaml:3:9: prompt: must not have the content of a file`,
		server + "env: {A: '${file:gone}'}":         `org.yaml:4:11: env.A: file "gone": no such file or directory`,
	} {
		writeFile(t, "org.yaml", text)
		_, err := config.LoadFiles([]string{"org.yaml"}, nil)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s:\ngot  %v\nwant %s", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: the content is shown: %v", text, err)
		}
	}
}

// Of the content, one line break at the end is left out, and nothing else.
func TestLoadFiles_KeepsSecretContent(t *testing.T) {
	full := strings.Repeat("c", 64<<10)
	for content, want := range map[string]yamldoc.Secret{"": "", "\n": "", "a\n": "a", "a\r\n": "a", "a\n\n": "a\n", " a\r": " a\r", "${NAME}": "${NAME}", full: yamldoc.Secret(full)} {
		write(t, map[string]string{"org.yaml": "{kind: mcpServer, name: s, command: tool, env: {A: '${file:secret}'}}", "secret": content})
		cfg, err := config.LoadFiles([]string{"org.yaml"}, testEnv)
		if err != nil || cfg.MCPServers[0].Env["A"] != want {
			t.Errorf("%.20q: got %.20q, %v", content, string(cfg.MCPServers[0].Env["A"]), err)
		}
	}
}

func TestModel_ReadKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	m := config.Model{KeyFile: path}
	for content, want := range map[string]yamldoc.Secret{"sk-1\n": "sk-1", " sk-2\r\n\n": "sk-2", "": "", "sk-cän": ""} {
		writeFile(t, path, content)
		key, err := m.ReadKey()
		if key != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v", content, string(key), err)
		}
		if err != nil && strings.Contains(err.Error(), "sk-") {
			t.Errorf("%q: the content is shown: %v", content, err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if key, err := m.ReadKey(); key != "" || err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("missing file: %q, %v", string(key), err)
	}
}
