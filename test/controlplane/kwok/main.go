// Command kwok is the kwok controller, which plays the kubelets, in a module of
// its own: it needs other versions of the Kubernetes libraries than the control
// plane does. It is not built from the upstream main package so that it, too,
// ends with the test run that started it.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"
	"sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/kwok/cmd"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/signals"
)

func main() {
	if os.Getenv("LASTCALL_E2E_EXIT_WITH_PARENT") != "" {
		go exitWithParent()
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "Cannot run kwok:", err)
		os.Exit(1)
	}
}

// run reads the configuration files before the command's own flags, because
// they decide the defaults that those flags have.
func run() error {
	early := pflag.NewFlagSet("kwok", pflag.ContinueOnError)
	early.ParseErrorsAllowlist.UnknownFlags = true
	ctx, _ := log.InitFlags(signals.SetupSignalContext(), early)
	ctx, err := config.InitFlags(ctx, early)
	if err != nil {
		return err
	}
	command := cmd.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(early)
	return command.ExecuteContext(ctx)
}

// exitWithParent ends the process when standard input closes, which the system
// does however the parent ended. It is a copy: the two modules share no code.
func exitWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(3)
}
