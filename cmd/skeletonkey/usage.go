package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// usageOf is a wrong command line of cmd, with the way to the right one.
func usageOf(cmd *cobra.Command, err error) error {
	return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
}

// strictArgs makes a wrong number of arguments a usageError, in all commands.
func strictArgs(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			if err != nil && strings.HasPrefix(err.Error(), "unknown command") { // so cobra says to what takes none
				err = fmt.Errorf("%s takes no arguments, and got %q", cmd.CommandPath(), args[0])
			}
			if err != nil {
				return usageOf(cmd, err)
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		strictArgs(sub)
	}
}

// checkCommand refuses a command that is not there. Cobra would show the help of a
// group for a misspelt command in it, and call that success.
func checkCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 || strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		return nil
	}
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	if args[0] == "help" {
		args = args[1:]
	}
	cmd, rest, err := root.Find(args)
	if err != nil {
		for _, arg := range rest {
			if strings.Contains(err.Error(), strconv.Quote(arg)) {
				return unknownCommand(cmd, arg)
			}
		}
		return usageOf(cmd, err)
	}
	if cmd != root && !cmd.Runnable() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return unknownCommand(cmd, rest[0])
	}
	return nil
}

func unknownCommand(group *cobra.Command, name string) error {
	err := fmt.Errorf("%s has no command %q", group.CommandPath(), name)
	if group.SuggestionsMinimumDistance = 2; len(group.SuggestionsFor(name)) > 0 {
		err = fmt.Errorf("%w; did you mean %s?", err, strings.Join(group.SuggestionsFor(name), " or "))
	}
	return usageOf(group, err)
}
