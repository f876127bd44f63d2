package cmd

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/model/catalog"
)

// starter contains the files that init writes: organization.yaml, the document of each
// model, and the script.
//
//go:embed starter
var starter embed.FS

// Names of the files that init writes.
const (
	starterConfig = "org.yaml"
	starterScript = "agents.js"
)

// starterModels are the values of --model, each with a file in starter.
var starterModels = []string{"openai", "anthropic", "gemini", "ollama", "script"}

func newInitCommand(c *common) *cobra.Command {
	var model string
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write a small organization to start from",
		Long: `Write a small organization into DIR, or into the current directory: root, two roles
with different tool groups, and a model. Comments explain each part. Existing files are
never overwritten.

Without --model, the model is that of the first of OPENAI_API_KEY, ANTHROPIC_API_KEY and
GEMINI_API_KEY that is set. If none is set it is a script, which needs no key.`,
		Example: `  rolecall init
  rolecall init desk --model ollama`,
		Args: func(cmd *cobra.Command, args []string) error {
			return exactArgs(min(len(args), 1), "at most one directory")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			if model == "" && cmd.Flags().Changed("model") {
				return usageError{errors.New("--model is empty; set a value or omit it")}
			}
			return runInit(c, dir, model)
		},
	}
	cmd.Flags().StringVar(&model, "model", "", "start with this `model`: "+strings.Join(starterModels, ", "))
	return cmd
}

func runInit(c *common, dir, model string) error {
	if len(c.files) > 0 {
		return usageError{fmt.Errorf("init reads no configuration; omit --file, and name the directory to write to: %q", "rolecall init DIR")}
	}
	if model == "" {
		model = c.starterModel()
	}
	if !slices.Contains(starterModels, model) {
		hint := textutil.SuggestName(model, starterModels)
		if hint == "" {
			hint = "there are " + strings.Join(starterModels, ", ")
		}
		return usageError{fmt.Errorf("--model %q is unknown (%s)", model, hint)}
	}
	files := starterFiles(dir, model)
	if err := writeNewFiles(dir, files); err != nil {
		return err
	}
	return printStarter(c, files, model)
}

// starterModel returns the model whose key is set, or script.
func (c *common) starterModel() string {
	for _, p := range catalog.ListProviders() {
		if c.getenv(p.KeyVariable) != "" && slices.Contains(starterModels, p.Type) {
			return p.Type
		}
	}
	return "script"
}

// starterFile is a file to write.
type starterFile struct {
	path string
	text []byte
}

// starterFiles returns the files of a small organization in dir with a model.
func starterFiles(dir, model string) []starterFile {
	read := func(name string) []byte {
		text, err := starter.ReadFile("starter/" + name)
		if err != nil {
			panic(err) // the file is part of the program
		}
		return text
	}
	files := []starterFile{{filepath.Join(dir, starterConfig), append(read("organization.yaml"), read(model+".yaml")...)}}
	if model == "script" {
		files = append(files, starterFile{filepath.Join(dir, starterScript), read(starterScript)})
	}
	return files
}

// writeNewFiles creates files in dir, all or none. It overwrites nothing.
func writeNewFiles(dir string, files []starterFile) error {
	var taken []string
	for _, f := range files {
		if _, err := os.Lstat(f.path); err == nil {
			taken = append(taken, f.path)
		}
	}
	if len(taken) > 0 {
		return fmt.Errorf("init overwrites no files, and there is %s already; choose another directory: %q", strings.Join(taken, " and "), "rolecall init DIR")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("create the directory: %w", err)
	}
	for i, f := range files {
		if err := createFile(f.path, f.text, 0o644); err != nil {
			for _, made := range files[:i] {
				err = errors.Join(err, os.Remove(made.path))
			}
			return fmt.Errorf("write the organization: %w", err)
		}
	}
	return nil
}

// starterOutput is the output of init with --json.
type starterOutput struct {
	Files    []string `json:"files"`
	Commands []string `json:"commands"` // what to run next
}

// printStarter prints the files that were written and which commands to run next.
func printStarter(c *common, files []starterFile, model string) error {
	config := " -f " + quoteWord(files[0].path)
	shown := starterOutput{Commands: []string{
		c.unsetPrefix() + programName() + " run" + config + c.dataFlag() + ` "Remember the milk"`,
		c.unsetPrefix() + programName() + " can" + config + c.dataFlag() + " --who write_file",
	}}
	if model != "script" {
		shown.Commands = slices.Insert(shown.Commands, 0, c.unsetPrefix()+programName()+" model test"+config+c.dataFlag()+" main")
	}
	for _, f := range files {
		shown.Files = append(shown.Files, f.path)
	}
	if c.json {
		return printJSON(c.out, shown)
	}
	for _, path := range shown.Files {
		if _, err := fmt.Fprintln(c.out, textutil.Sanitize(path)); err != nil {
			return err
		}
	}
	if p, ok := catalog.FindProvider(model); ok && c.getenv(p.KeyVariable) == "" {
		fmt.Fprintf(c.err, "\nSet the key first:\n  export %s=…\n", p.KeyVariable)
	}
	fmt.Fprint(c.err, "\nNext:\n")
	for _, command := range shown.Commands {
		fmt.Fprintf(c.err, "  %s\n", textutil.Sanitize(command))
	}
	return nil
}
