"""What was wished: the promises, and what is bought for them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from controller.plan.kept_ledger import KeptLedger
from controller.plan.maintenance import Maintenance
from controller.plan.purchases import Purchase, PurchaseState


@dataclass(frozen=True, slots=True)
class Wished:
    """What users have been promised, and what providers have been asked for.

    The ledger is the one part that is changed in place: copies of a calendar with 30,000 reservations would cost more
    than deciding on them. Its version says whether anything that a plan is made of has changed in it.

    Attributes:
        ledger: reservations, announcements and their calendar.
        restored: how often the ledger was read from the database.
        purchases: by circuit that is bought at need, what is bought, by name.
        rebuilding: purchases that are up and change their rate: what they carry meanwhile.
        unsaved: purchases that their provider shows otherwise than they are saved: how they are saved.
    """

    ledger: KeptLedger
    restored: int = 0
    maintenance: tuple[Maintenance, ...] = ()
    purchases: Mapping[str, Mapping[str, Purchase]] = field(default_factory=dict)
    rebuilding: Mapping[str, int] = field(default_factory=dict)
    unsaved: Mapping[str, Purchase] = field(default_factory=dict)

    @property
    def version(self) -> tuple[int, int]:
        """Another one whenever what the ledger asks of the plan may have changed."""
        return self.restored, self.ledger.moves

    def bought_bps(self, circuit: str, now_us: int) -> int:
        """Return what a circuit that is bought at need carries now."""
        return sum(
            min(p.period.rate_bps, self.rebuilding.get(p.name, p.period.rate_bps))
            for p in self.purchases[circuit].values()
            if (p.state is PurchaseState.UP or (p.state is PurchaseState.DEPLOYING and p.name in self.rebuilding))
            and p.period.start_us <= now_us < p.period.end_us
        )

    def with_purchase(self, circuit: str, purchase: Purchase) -> "Wished":
        """Return it after a purchase was made, or has changed."""
        of_circuit = {**self.purchases[circuit], purchase.name: purchase}
        return replace(self, purchases={**self.purchases, circuit: of_circuit})

    def without_purchase(self, circuit: str, name: str) -> "Wished":
        """Return it after a purchase was forgotten."""
        of_circuit = {known: purchase for known, purchase in self.purchases[circuit].items() if known != name}
        unsaved = {known: purchase for known, purchase in self.unsaved.items() if known != name}
        return replace(self, purchases={**self.purchases, circuit: of_circuit}, unsaved=unsaved)

    def with_shown(self, circuit: str, purchase: Purchase) -> "Wished":
        """Return it after a look at a provider has shown a purchase otherwise than it was known; that is not saved."""
        as_saved = self.unsaved.get(purchase.name, self.purchases[circuit][purchase.name])
        unsaved = {**self.unsaved, purchase.name: as_saved}
        return replace(self.with_purchase(circuit, purchase), unsaved=unsaved)

    def with_saved(self, circuit: str, purchase: Purchase) -> "Wished":
        """Return it after a purchase was saved; it may have been shown otherwise since."""
        if purchase.name not in self.unsaved:
            return self
        if self.purchases[circuit].get(purchase.name) != purchase:
            return replace(self, unsaved={**self.unsaved, purchase.name: purchase})
        return replace(self, unsaved={name: one for name, one in self.unsaved.items() if name != purchase.name})

    def with_rebuilding(self, name: str, rate_bps: int) -> "Wished":
        """Return it while a purchase changes its rate and carries ``rate_bps`` meanwhile."""
        return replace(self, rebuilding={**self.rebuilding, name: rate_bps})

    def rebuilt(self, name: str) -> "Wished":
        """Return it after a purchase has its new rate."""
        return replace(self, rebuilding={known: bps for known, bps in self.rebuilding.items() if known != name})
