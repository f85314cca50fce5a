"""What every database keeps to about what is kept beside the promises; a part of the whole contract."""

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.database import Changes, Database
from controller.database.clock import SavedTime
from controller.plan.maintenance import Maintenance
from controller.tests.past_contract import done

integers = st.integers(-(2**63), 2**63 - 1)
said = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)  # Unicode: what a request may say
maintenance = st.lists(st.builds(Maintenance, said, said, integers, integers, said, said, integers, said, said))


class BesideContract:
    """For :class:`~controller.tests.database_contract.DatabaseContract`, which has the fixtures."""

    def test_the_time_that_was_saved_last_outlives_the_database(self, database, url):
        assert database.time() is None
        times = [SavedTime("boot", calendar_us, 5) for calendar_us in (1, 3, 2)]
        done(database, Changes(time=times[0]))
        for saved in [database.save(Changes(time=time)) for time in times[1:]]:
            saved.result(10)
        assert database.time() == times[-1]
        database.close()
        again = Database(url)
        again.open()
        assert again.time() == times[-1]
        again.close()

    def test_a_maintenance_whose_words_are_quoted_is_loaded_equal(self, database):
        one = Maintenance("m", "c", 1, 2, words='splice at "El Tololo" \\ \\u005c', key='"8e03978e"')
        done(database, Changes(maintenance=(one,)))
        assert database.load().maintenance == (one,)

    def test_any_maintenance_is_loaded_equal(self, database):
        @settings(max_examples=40, deadline=None)
        @given(maintenance.map(tuple))
        def round_trip(planned):
            done(database, Changes(maintenance=planned))
            assert database.load().maintenance == planned

        round_trip()
