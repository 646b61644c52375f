interface KnownTool {
  readonly tool: string;
  /** What its images are called. */
  readonly image: RegExp;
  /** Whether it drains at a notice, or ends machines, as we do. */
  readonly rival: boolean;
}

/**
 * Tools that take nodes away, by the names of the images that they publish. Karpenter,
 * cluster-autoscaler and kured say by a mark which node they are taking, and such a node is left to
 * them; the others do not wait for anybody.
 */
const knownTools: readonly KnownTool[] = [
  { tool: "aws-node-termination-handler", image: /aws-node-termination-handler/, rival: true },
  { tool: "estafette's preemptible killer", image: /gke-preemptible-killer/, rival: true },
  {
    tool: "GCP node termination handler",
    image: /gke-node-termination-handler|k8s-node-termination-handler/,
    rival: true,
  },
  { tool: "spot termination handler", image: /spot-termination(-notice)?-handler/, rival: true },
  { tool: "draino", image: /(^|\/)draino(2)?[:@]/, rival: true },
  { tool: "Karpenter", image: /karpenter/, rival: false },
  { tool: "cluster-autoscaler", image: /cluster-autoscaler/, rival: false },
  { tool: "kured", image: /(^|\/)kured[:@]/, rival: false },
  { tool: "descheduler", image: /(^|\/)descheduler[:@]/, rival: false },
];

/** The tool that an image is of; undefined where it is none that is known. */
export function toolOfImage(image: string): Omit<KnownTool, "image"> | undefined {
  const found = knownTools.find((one) => one.image.test(image));
  return found && { tool: found.tool, rival: found.rival };
}
