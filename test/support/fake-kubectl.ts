/**
 * A kubectl in bash with a ServiceAccount in each namespace and one Secret, until `cluster-gone`.
 * As the real one (kubectl's pkg/cmd/annotate, pkg/cmd/get, pkg/cmd/create), it
 *
 * - does not annotate what has another value already, unless told to overwrite it;
 * - removes an annotation that does not exist without an error;
 * - prints nothing for what does not exist, if told to ignore that.
 *
 * The annotations are files `annotation-NAMESPACE-KEY`, with an underscore for the slash. A Secret
 * has the account in its annotation and the id of its key, or a question mark for each.
 */
export const fakeKubectl = `
! has cluster-gone || refuse "Unable to connect to the server: no such host"
not_found() { echo "Error from server (NotFound): $1 not found" >&2; exit 1; }
namespace="$(flag --namespace)"
annotation_of() { echo "annotation-$namespace-\${1//\\//_}"; }
# Evaluates a path such as {.metadata.annotations.a\\.b/c}.
evaluate() {
  local path="\${1#\\{}"
  path="\${path%\\}}"
  path="\${path//\\\\./.}"
  case "$path" in
    .metadata.name) printf %s "$name" ;;
    .metadata.annotations.*) file="$(annotation_of "\${path#.metadata.annotations.}")"; ! has "$file" || printf %s "$(get "$file")" ;;
    *) refuse "no such path: $path" ;;
  esac
}
show() {
  local paths path bar=""
  IFS='|' read -ra paths <<< "\${1#jsonpath=}"
  for path in "\${paths[@]}"; do printf %s "$bar"; evaluate "$path"; bar='|'; done
}
annotate() {
  local pair file
  for pair in "\${args[@]}"; do
    [[ "$pair" == */*=* ]] || continue
    file="$(annotation_of "\${pair%%=*}")"
    if [[ "$line" != *'|--overwrite'* ]] && has "$file" && [[ "$(get "$file")" != "\${pair#*=}" ]]; then
      echo "error: --overwrite is false but found the following declared annotation(s): '\${pair%%=*}' already has a value ($(get "$file"))" >&2
      exit 1
    fi
  done
  for pair in "\${args[@]}"; do
    case "$pair" in
      */*=*) put "$(annotation_of "\${pair%%=*}")" "\${pair#*=}" ;;
      */*-) file="$(annotation_of "\${pair%-}")"; ! has "$file" || drop "$file" ;;
    esac
  done
}
case "$*" in
  *'|get|--raw|/.well-known/openid-configuration')
    ! has issuer-refused || { echo "Error from server (Forbidden): forbidden" >&2; exit 1; }
    if has issuer; then issuer="$(get issuer)"; elif has cluster; then issuer="$(get cluster)"
    else issuer=https://container.googleapis.com/v1/projects/my-project-1/locations/europe-west1/clusters/main; fi
    echo "{\\"issuer\\":\\"$issuer\\",\\"jwks_uri\\":\\"https://10.0.0.1/openid/v1/jwks\\"}" ;;
  *'|get|serviceaccount|'*)
    rest="\${line#*|get|serviceaccount|}"; name="\${rest%%|*}"
    if has service-account; then [[ "$line" != *"|--output|"* ]] || show "$(flag --output)"
    elif [[ "$line" != *'|--ignore-not-found'* ]]; then not_found "serviceaccounts \\"$name\\""; fi ;;
  *'|annotate|serviceaccount|'*) has service-account || not_found serviceaccounts; annotate ;;
  *'|get|secret|'*) if has secret; then get secret; fi ;;
  *'|create|secret|generic|'*'|--dry-run=client|--output|json')
    for pair in "\${args[@]}"; do
      case "$pair" in
        --from-literal=key-id=*) id="\${pair##*=}" ;;
        --from-file=*) file="\${pair##*=}" ;;
      esac
    done
    [[ "$(< "$file")" == *private_key_id* ]] || refuse "the file is not a key"
    echo "Secret ? $id" ;;
  *'|create|secret|generic|'*'|--dry-run=server') ! has secret || refuse "the secret exists already" ;;
  *'|annotate|--local|--filename|-|--output|json|lastcall.dev/identity='*)
    IFS=' ' read -r kind owner id || refuse "no objects passed to annotate"
    echo "$kind \${line##*=} $id" ;;
  *'|create|--filename|-')
    IFS=' ' read -r kind owner id || refuse "no objects passed to create"
    ! has secret || refuse "the secret exists already"
    ! has secret-refused || refuse "secrets is forbidden"
    put secret "$owner $id" ;;
  *'|delete|secret|'*) has secret || not_found secrets; drop secret ;;
  *) refuse "no such command: $*" ;;
esac
`;
