package cmd

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/internal/textutil"
)

// rejectUnknownTopics makes cobra's commands help and completion reject unknown names and
// extra arguments.
func rejectUnknownTopics(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Args = requireCommand
		case "completion":
			for _, shell := range commandGroup(cmd).Commands() {
				shell.Args = exactArgs(0, "no arguments")
			}
		}
	}
}

// requireCommand requires that the arguments name a command.
func requireCommand(cmd *cobra.Command, args []string) error {
	found, rest, err := cmd.Root().Find(args)
	if err == nil && len(rest) > 0 {
		err = errUnknownCommand(found, rest[0])
	}
	return err
}

// checkHelpTopic makes --help after an unknown name an error; cobra would print the help of
// the command above it. Read the returned error after root has run.
func checkHelpTopic(root *cobra.Command) *error {
	var problem error
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if rest := cmd.Flags().Args(); cmd.HasSubCommands() && len(rest) > 0 {
			problem = errUnknownCommand(cmd, rest[0])
			return
		}
		help(cmd, args)
	})
	return &problem
}

// errUnknownCommand returns the error for a name that is no command below parent.
func errUnknownCommand(parent *cobra.Command, name string) error {
	var known []string
	for _, cmd := range parent.Commands() {
		if cmd.IsAvailableCommand() || cmd.Name() == "help" {
			known = append(known, cmd.Name())
		}
	}
	text := textutil.AddHint(fmt.Sprintf("unknown command %q", parent.CommandPath()+" "+name), textutil.SuggestName(name, known))
	return usageError{errors.New(textutil.AddHint(text, fmt.Sprintf("%q lists the commands", parent.CommandPath()+" --help")))}
}
