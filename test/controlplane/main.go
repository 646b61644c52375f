// Command controlplane contains every binary of a Kubernetes control plane, and
// a kubelet: the first argument names the part, and the rest are that part's
// own arguments.
// A single binary links the shared libraries once instead of five times, which
// keeps a cold build bearable on a small machine.
package main

import (
	"fmt"
	"io"
	"os"
	"sort"
	"strings"
	_ "time/tzdata" // CronJobs name time zones, and a bare machine has none.

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"

	// The upstream main packages rely on the registrations that these imports
	// perform; without them, metrics about the client and the version are
	// missing.
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"

	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// parts maps a part's name to its entry point. Each part reads os.Args as if it
// were the only program in the binary.
var parts = map[string]func(){
	"etcd":                    func() { etcdmain.Main(os.Args) },
	"kube-apiserver":          func() { os.Exit(cli.Run(apiserver.NewAPIServerCommand())) },
	"kube-controller-manager": func() { os.Exit(cli.Run(controllermanager.NewControllerManagerCommand())) },
	"kube-scheduler":          func() { os.Exit(cli.Run(scheduler.NewSchedulerCommand())) },
	"kubectl":                 runKubectl,
}

func main() {
	if len(os.Args) < 2 {
		exitWithUsage("no part was named")
	}
	run, ok := parts[os.Args[1]]
	if !ok {
		exitWithUsage(fmt.Sprintf("no part is called %q", os.Args[1]))
	}
	os.Args = os.Args[1:]
	if os.Getenv("LASTCALL_E2E_EXIT_WITH_PARENT") != "" {
		go exitWithParent()
	}
	run()
}

// exitWithParent ends the process when standard input closes, which happens
// however the parent ended: no server outlives a test run that was killed.
func exitWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(3)
}

// runKubectl differs from the other parts because kubectl prints its own errors
// and uses the exit codes that scripts expect.
func runKubectl() {
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
	}
}

func exitWithUsage(problem string) {
	names := make([]string, 0, len(parts))
	for name := range parts {
		names = append(names, name)
	}
	sort.Strings(names)
	fmt.Fprintf(os.Stderr, "Cannot start a control plane part: %s, wanted one of %s\n", problem, strings.Join(names, ", "))
	os.Exit(2)
}
