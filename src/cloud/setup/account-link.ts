/**
 * What a set-up writes into the cluster itself. As everything that it creates in the cloud, it has
 * a mark: the name of the identity for which it was written, which is unique in the cloud. What has
 * another mark or none is that of a chart or of a person, so it is neither changed nor removed.
 */

/** The annotation with the mark, on a ServiceAccount and on a Secret. */
export const identityAnnotation = "lastcall.dev/identity";

/** The annotation that links the ServiceAccount to an identity. */
export interface AccountLink {
  /** The one that the cloud reads. */
  readonly annotation: string;
  /** Its value, with variables of the script. */
  readonly value: string;
  /** The mark, with variables of the script. */
  readonly mark: string;
  /** The identity, for messages. */
  readonly identity: string;
  /**
   * A command that succeeds if the set-up wrote the annotation for this identity before somebody
   * deleted it and this script created it again, with another value.
   */
  readonly former?: string;
}

function jsonPath(annotation: string): string {
  return `{.metadata.annotations.${annotation.replaceAll(".", "\\.")}}`;
}

/** Defines `link_look`, `right_cluster` and `same`. */
export function linkFunctions({ annotation }: AccountLink): string {
  const paths = ["{.metadata.name}", jsonPath(identityAnnotation), jsonPath(annotation)];
  return `# Reads the ServiceAccount: whether it exists, the mark of this script, and whom its annotation names.
link_look() {
  local found
  found="$("\${kubectl[@]}" get serviceaccount "$service_account" --ignore-not-found \\
    --output 'jsonpath=${paths.join("|")}')" || return
  exists="\${found%%|*}"
  found="\${found#*|}"
  linked_by="\${found%%|*}"
  linked="\${found#*|}"
}
# Ends the script if kubectl reaches another cluster than the one that has the issuer $1.
right_cluster() {
  local found form='"issuer": *"([^"]*)"'
  if ! found="$("\${kubectl[@]}" get --raw /.well-known/openid-configuration)"; then
    echo "Note: it is not known whether kubectl reaches $cluster; its issuer cannot be read there" >&2
    return
  fi
  if [[ "$found" =~ $form && "\${BASH_REMATCH[1]%/}" != "\${1%/}" ]]; then
    echo "Cannot continue: kubectl reaches the cluster with the issuer \${BASH_REMATCH[1]}, and $cluster has $1; choose it with --context" >&2
    exit 1
  fi
}
# Some clouds compare ids without regard to case.
same() (
  shopt -s nocasematch
  [[ "$1" == "$2" ]]
)`;
}

/** Reads the ServiceAccount before anything is changed; `issuer` is the cluster's, if known. */
export function linkLook(issuer?: string): string {
  const look = `# The installation creates the ServiceAccount; without it, nothing is changed.
link_look
if [[ -z "$exists" ]]; then
  echo "Cannot continue: the ServiceAccount $namespace/$service_account does not exist; the installation creates it: docs/running.md" >&2
  exit 1
fi`;
  return issuer === undefined ? look : `${look}\nright_cluster ${issuer}`;
}

/** Ends the script before any change if the ServiceAccount is linked to another identity. */
export function linkCheck({ annotation, value, identity, former }: AccountLink): string {
  const others = `[[ -n "$linked" && "$linked" != "${value}" ]]`;
  return `if ${others}${former === undefined ? "" : ` && ! ${former}`}; then
  echo "Cannot continue: the annotation ${annotation} of $namespace/$service_account names $linked, expected ${identity}; choose another ServiceAccount with --service-account, or, if nothing needs that identity anymore, remove the annotation and run this again:" >&2
  ${removalCommand(annotation)} >&2
  exit 1
fi`;
}

function removalCommand(annotation: string): string {
  return `typed "\${kubectl[@]}" annotate serviceaccount "$service_account" ${annotation}- ${identityAnnotation}-`;
}

/** Links the ServiceAccount, unless somebody else has linked it to the same identity. */
export function linkStep({ annotation, value, mark, former }: AccountLink): string {
  const replaced = `if [[ "$linked" != "${value}" ]] && ${former}; then
  "\${kubectl[@]}" annotate serviceaccount "$service_account" ${annotation}- ${identityAnnotation}-
  linked=""
  linked_by=""
fi
`;
  return `${former === undefined ? "" : replaced}if [[ -z "$linked" ]]; then
  if [[ -n "$linked_by" && "$linked_by" != "${mark}" ]]; then
    "\${kubectl[@]}" annotate serviceaccount "$service_account" ${identityAnnotation}-
  fi
  # Without --overwrite, kubectl does not replace what others have written meanwhile.
  "\${kubectl[@]}" annotate serviceaccount "$service_account" "${annotation}=${value}" \\
    "${identityAnnotation}=${mark}"
fi`;
}

/**
 * Reads the link before an undo changes anything. The cluster is often deleted first; `issuer` is
 * "missing" then, and no address if nobody knows it. If kubectl fails, the rest is removed, and the
 * script ends with that error.
 */
export function undoLinkLook({ annotation }: AccountLink): string {
  return `linked=""
linked_by=""
if [[ "$issuer" == missing ]]; then
  echo "The cluster $cluster is gone, and the annotation ${annotation} with it; if that is not its name, run this again with the right one."
elif link_look; then
  if [[ "$issuer" == https://* ]]; then right_cluster "$issuer"; fi
else
  lost="kubectl failed, so the annotation ${annotation} of $namespace/$service_account is still there, unless the cluster is gone; the rest is removed"
fi`;
}

/** Removes the annotation that the set-up wrote. */
export function linkRemoval({ annotation, value, mark }: AccountLink): string {
  return `if same "$linked_by" "${mark}"; then
  ours=(${identityAnnotation}-)
  # Somebody may have linked the ServiceAccount to another identity since.
  if [[ "$linked" == "${value}" ]]; then ours+=(${annotation}-); fi
  "\${kubectl[@]}" annotate serviceaccount "$service_account" "\${ours[@]}"
elif [[ -n "$linked" && "$linked" == "${value}" ]]; then
  keep "the annotation ${annotation} of $namespace/$service_account, which this script did not write. To remove it:"
  ${removalCommand(annotation)}
fi`;
}
