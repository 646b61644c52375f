// Command kwok is the kwok controller, which acts as the kubelets. It is a
// separate module because it needs other versions of the Kubernetes libraries
// than the control plane. It does not use the upstream main package, so that it
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
// they determine the defaults of those flags.
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

// exitWithParent ends the process when standard input closes, which happens
// however the parent ended. It is a copy, because the two modules share no
// code.
func exitWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(3)
}
