package cmd

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
)

// flagError converts an error of the flag parser to a usage error in plain words.
func flagError(cmd *cobra.Command, err error) error {
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		err = fmt.Errorf("--%s %q is %s", invalid.GetFlag().Name, invalid.GetValue(), valueProblem(invalid))
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		err = errUnknownFlag(cmd, unknown)
	}
	if missing, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		err = fmt.Errorf("--%s needs a value", missing.GetFlag().Name)
	}
	return usageError{errors.New(textutil.AddHint(err.Error(), fmt.Sprintf("%q shows the flags", cmd.CommandPath()+" --help")))}
}

// asFlagError converts an error about a query parameter to a usage error about the flag of
// this name, if the command has sent its value.
func asFlagError(cmd *cobra.Command, err error) error {
	e, ok := errors.AsType[*errcode.Error](err)
	if !ok || e.Code != errcode.InvalidArguments {
		return err
	}
	name, _ := e.Details["field"].(string)
	parameter := fmt.Sprintf("query parameter %q", name)
	if name == "" || !cmd.Flags().Changed(name) || !strings.HasPrefix(e.Message, parameter) {
		return err
	}
	return usageError{errors.New("--" + name + strings.TrimPrefix(e.Message, parameter))}
}

// errUnknownFlag returns the error for a flag that the command does not have.
func errUnknownFlag(cmd *cobra.Command, err *pflag.NotExistError) error {
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, "--"+f.Name) })
	unknown, meant := "--"+err.GetSpecifiedName(), "--"+err.GetSpecifiedName()
	if short := err.GetSpecifiedShortnames(); short != "" {
		unknown, meant = "-"+err.GetSpecifiedName(), "--"+short // -json is read as -j -s -o -n
	}
	hint := ""
	if len(meant) > len("--x") {
		hint = textutil.SuggestName(meant, known)
	}
	return errors.New(textutil.AddHint("unknown flag "+unknown, hint))
}

// valueProblem describes why the value of a flag is invalid.
func valueProblem(invalid *pflag.InvalidValueError) string {
	if errors.Is(invalid, strconv.ErrRange) {
		return "out of range"
	}
	switch invalid.GetFlag().Value.Type() {
	case "bool":
		return "not true or false"
	case "int", "uint64":
		return "not a whole number"
	case "float64":
		return "not a number"
	case "duration":
		return "not a duration such as 30s or 5m"
	case gatingType:
		return "not true, false or strict"
	case "stringToInt":
		return "not NAME=NUMBER"
	}
	return "invalid: " + invalid.Unwrap().Error()
}

// mayBeEmpty lists the flags that accept an empty text: it sets a field of a role to its
// default, or means no reason.
var mayBeEmpty = []string{"description", "prompt", "model", "server", "pattern", "reason", "result", "states"}

// rejectEmptyFlags returns a usage error if a flag is given with an empty value. Such a
// value usually comes from an unset variable, and must not select the default.
func rejectEmptyFlags(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch list, isList := f.Value.(pflag.SliceValue); {
		case isList && slices.Contains(list.GetSlice(), "") && f.Value.Type() == "stringArray":
			err = usageError{fmt.Errorf("--%s has an empty value", f.Name)}
		case isList && len(list.GetSlice()) == 0 && f.Value.Type() == "stringSlice" && !slices.Contains(mayBeEmpty, f.Name):
			err = usageError{fmt.Errorf("--%s is empty; set a value or omit it", f.Name)}
		case f.Value.Type() == "string" && f.Value.String() == "" && !slices.Contains(mayBeEmpty, f.Name):
			err = usageError{fmt.Errorf("--%s is empty; set a value or omit it", f.Name)}
		}
	})
	return err
}

// addPrebuilt adds the prebuilt files to the files that the commands read.
func (c *common) addPrebuilt() {
	for _, name := range c.prebuilt {
		c.files = append(c.files, toolboxfile.PrebuiltPath(name))
	}
}

// rejectFiles returns a usage error if -f is given to a command that reads no configuration.
func (c *common) rejectFiles(command string) error {
	if len(c.files) == 0 {
		return nil
	}
	return usageError{fmt.Errorf("%s reads no configuration; omit -f and --prebuilt", command)}
}

// rejectTogether returns a usage error if flag is given together with one of others.
func rejectTogether(cmd *cobra.Command, flag string, others ...string) error {
	for _, other := range others {
		if cmd.Flags().Changed(flag) && cmd.Flags().Changed(other) {
			return usageError{fmt.Errorf("--%s and --%s are mutually exclusive", flag, other)}
		}
	}
	return nil
}
