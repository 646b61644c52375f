import { fakeKubectl } from "./fake-kubectl.ts";
import { type FakeTools, makeFakeTools } from "./fake-tools.ts";

/**
 * A subscription in bash, with AKS, identities and roles as far as the setup uses them. As in
 * Azure, a role that is assigned cannot be deleted. A `show` of what does not exist ends with 3,
 * and its error begins with the code of the response (Azure/azure-cli issues 6612 and 14913). The
 * list of all assignments cannot be limited to a role by its name (issues 16876 and 29407).
 */
const az = `
absent() { echo "($1) The Resource was not found." >&2; exit 3; }
ours() { if has "$1"; then get "$1"; else absent ResourceNotFound; fi; }
name_of() { local text="\${1#*\\"Name\\": \\"}"; echo "\${text%%\\"*}"; }
case "$1 $2 $3" in
  "aks show "*)
    has cluster || absent ResourceNotFound
    case "$(flag --query)" in
      oidcIssuerProfile.issuerUrl) get cluster ;;
      securityProfile.workloadIdentity.enabled) if has webhook; then echo true; else echo false; fi ;;
      nodeResourceGroup) echo MC_shop_main_westeurope ;;
      location) echo westeurope ;;
      id) echo the-id ;;
    esac ;;
  "identity show "*)
    case "$(flag --query)" in
      *lastcall-account*) found="$(ours identity)" || exit; [[ "$found" != *' '* ]] || echo "\${found#* }" ;;
      tags*) found="$(ours identity)" || exit; echo "\${found% *}" ;;
      clientId) ours identity >/dev/null; echo client-1 ;;
      principalId) ours identity >/dev/null; echo principal-1 ;;
    esac ;;
  "identity create "*) ! has identity || refuse "exists"; tag="$(flag --tags)"
    rest="\${line#*|lastcall-account=}"; put identity "\${tag##*=} \${rest%%|*}" ;;
  "identity delete "*) has identity || refuse "none"; drop identity; ! has credential || drop credential ;;
  "identity federated-credential show") has credential || absent NotFound; echo lastcall ;;
  "identity federated-credential create") ! has credential || refuse "exists"; put credential "$(flag --subject) by $(flag --issuer)" ;;
  "identity federated-credential update") has credential || refuse "none"; put credential "$(flag --subject) by $(flag --issuer)" ;;
  "role definition list")
    role="role-$(flag --name)"
    if has "$role"; then
      case "$(flag --query)" in
        '[0].name') echo "uuid-of-$(flag --name)" ;;
        *) text="$(get "$role")"; text="\${text#*\\"Description\\": \\"}"; echo "\${text%%\\"*}" ;;
      esac
    fi ;;
  "role definition create") role="role-$(name_of "$(flag --role-definition)")"; ! has "$role" || refuse "exists"; put "$role" "$(flag --role-definition)" ;;
  "role definition update") role="role-$(name_of "$(flag --role-definition)")"; has "$role" || refuse "none"; put "$role" "$(flag --role-definition)" ;;
  "role definition delete") ! has "grant-$(flag --name)" || refuse "(RoleDefinitionHasAssignments)"; drop "role-$(flag --name)" ;;
  "role assignment list")
    if [[ "$line" == *'|--all'* ]]; then
      [[ "$line" != *'|--role|'* ]] || refuse "No value for given attribute"
      # Such as [?ends_with(roleDefinitionId, '/uuid')].id
      name="$(flag --query)"; name="\${name#*/uuid-of-}"; name="\${name%%[!A-Za-z0-9-]*}"
    else name="$(flag --role)"; fi
    ! has "grant-$name" || echo "grant-$name" ;;
  "role assignment create")
    if has slow-principal; then drop slow-principal; refuse "(PrincipalNotFound)"; fi
    has "role-$(flag --role)" || refuse "none"
    put "grant-$(flag --role)" "$(flag --scope) $(flag --assignee-object-id)" ;;
  "role assignment delete") has "$(flag --ids)" || refuse "none"; drop "$(flag --ids)" ;;
  *) refuse "no such command: $*" ;;
esac
`;

export function makeFakeAz(): FakeTools {
  return makeFakeTools({ az, kubectl: fakeKubectl });
}
